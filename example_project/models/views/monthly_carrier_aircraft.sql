{{ config(partition_by='toYYYYMM(month)') }}

select
    carrier,
    toStartOfMonth(flight_date) as month,
    uniq(tailnum) as aircraft,
    uniqExact(tailnum) as aircraft_exact
from {{ source('raw', 'flights') }}
group by carrier, month
