-- Which producers run without a full guarantee?
SELECT client_id, host, max(started_at) AS last_started_at,
       max_by(guarantee, started_at) AS guarantee, max_by(acks, started_at) AS acks,
       max_by(idempotent, started_at) AS idempotent, max_by(ordered, started_at) AS ordered,
       max_by(overridden, started_at) AS overridden
FROM client_configs
WHERE role = 'producer'
GROUP BY client_id, host
HAVING guarantee <> 'exactly_once_per_partition'
ORDER BY client_id
