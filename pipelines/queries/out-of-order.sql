-- Whose messages are out of order in the log?
SELECT l.client_id, l.topic, sum(l.out_of_order) AS steps_back, sum(l.sent) AS sent,
       max(c.idempotent) AS idempotent, max(c.max_in_flight) AS max_in_flight
FROM delivery_ledger l
LEFT JOIN (
  SELECT client_id, max_by(idempotent, started_at) AS idempotent,
         max_by(max_in_flight, started_at) AS max_in_flight
  FROM client_configs WHERE role = 'producer' GROUP BY client_id
) c ON c.client_id = l.client_id
WHERE l.`group` = '' AND l.out_of_order > 0
GROUP BY l.client_id, l.topic
ORDER BY steps_back DESC
