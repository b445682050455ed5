-- Which alerts went to whom, and which are still open?
-- :owner  only owners like this one = %
WITH newest AS (
  SELECT *, row_number() OVER (PARTITION BY fingerprint ORDER BY number DESC, step DESC) AS nth
  FROM alerts
)
SELECT owner, check, status, count(*) AS alerts, min(starts_at) AS first_at,
       max(changed_at) AS last_change_at, array_distinct(flatten(collect_list(delivered))) AS sent_to
FROM newest
WHERE nth = 1 AND owner LIKE :owner
GROUP BY owner, check, status
ORDER BY status, alerts DESC
