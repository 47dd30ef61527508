{{ config(order_by=['merchant_id', 'currency']) }}

-- The balance of each merchant and currency, kept by every event that arrives. The reserve depends on
-- a policy: if it changes, the balances of that merchant are stale until they are replayed.
select
    e.merchant_id as merchant_id,
    e.currency as currency,
    sumIf(e.amount_cents, e.kind in ('capture_settled', 'chargeback_won'))
        - sumIf(e.amount_cents, e.kind in ('refund_posted', 'chargeback_opened')) as balance_cents,
    sumIf(intDiv(e.amount_cents * p.reserve_percent, 100), e.kind = 'capture_settled') as reserve_cents,
    count() as events,
    max(e.occurred_at) as last_event_at
from {{ ref('ledger_events') }} as e
left join {{ ref('reserve_policies') }} as p on e.merchant_id = p.merchant_id
group by merchant_id, currency
