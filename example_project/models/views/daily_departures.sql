{{ config(partition_by='toYYYYMM(flight_date)') }}

-- Chained: triggered by what hourly_departures writes. A sum of counts and a sum of sums mean the
-- same over the hours as over the flights, so they may be chained.
select
    origin,
    flight_date,
    sum(scheduled) as scheduled,
    sum(departed) as departed,
    sum(dep_delay_minutes) as dep_delay_minutes
from {{ ref('hourly_departures') }}
group by origin, flight_date
