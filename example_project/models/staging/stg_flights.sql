-- What ad-hoc questions and ordinary models read: names for people, cancelled flights marked.
select
    flight_date,
    hour,
    origin,
    dest,
    carrier,
    flight,
    tailnum,
    dep_delay,
    arr_delay,
    distance,
    dep_time is null as is_cancelled
from {{ source('raw', 'flights') }}
