{{ config(partition_by='toYYYYMM(month)') }}

-- The third of a chain: flights, hours, days, months. One INSERT of flights reaches it in one commit.
select
    origin,
    toStartOfMonth(flight_date) as month,
    sum(scheduled) as scheduled,
    sum(departed) as departed,
    sum(dep_delay_minutes) as dep_delay_minutes
from {{ ref('daily_departures') }}
group by origin, month
