{{ config(
    partition_by='toYYYYMM(flight_date)',
    order_by=['airline', 'flight_date', 'flight']
) }}

-- Row by row: the airline's name joined from a dimension. A change of the dimension makes the
-- slices that it reaches stale.
select
    f.flight_date as flight_date,
    f.hour as hour,
    f.origin as origin,
    f.dest as dest,
    f.flight as flight,
    a.name as airline,
    f.dep_delay as dep_delay
from {{ source('raw', 'flights') }} as f
left join {{ source('raw', 'airlines') }} as a on f.carrier = a.carrier
where f.dep_time is not null
