{{ config(partition_by='toYYYYMM(flight_date)') }}

select
    origin,
    flight_date,
    hour,
    count() as scheduled,
    count(dep_time) as departed,
    sum(dep_delay) as dep_delay_minutes,
    sum(distance) as miles
from {{ source('raw', 'flights') }}
group by origin, flight_date, hour
