{{ config(materialized='view') }}

-- An ordinary view on an incremental_mv model and a seed: always as fresh as the last INSERT.
select
    w.weekday as weekday,
    w.name as name,
    w.is_weekend as is_weekend,
    sum(d.scheduled) as scheduled,
    sum(d.departed) as departed
from {{ ref('daily_departures') }} as d
inner join {{ ref('weekdays') }} as w on toDayOfWeek(d.flight_date) = w.weekday
group by w.weekday, w.name, w.is_weekend
