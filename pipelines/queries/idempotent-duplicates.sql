-- Which idempotent producers have duplicates in the log all the same?
SELECT client_id, host, topic, session, sum(duplicates) AS duplicates, sum(sent) AS sent
FROM delivery_ledger
WHERE `group` = '' AND duplicates > 0
  AND (settings['enable.idempotence'] = 'true' OR client_id IN (
    SELECT client_id FROM client_configs WHERE idempotent AND client_id IS NOT NULL))
GROUP BY ALL
ORDER BY duplicates DESC
