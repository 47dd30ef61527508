-- Finance adds up the whole ledger in another way than the view; both have to agree.
select merchant_id, currency, balance_cents from {{ ref('merchant_balance') }}
except
select
    merchant_id,
    currency,
    sum(amount_cents * transform(kind, ['capture_settled', 'chargeback_won'], [1, 1], -1))
from {{ ref('ledger_events') }}
group by merchant_id, currency
