-- Which messages were stored although their application was told that they failed?
SELECT client_id, host, topic, session, sum(ghosts) AS ghosts, sum(sent) AS sent,
       min(first_at) AS first_at, max(last_at) AS last_at
FROM delivery_ledger
WHERE `group` = '' AND ghosts > 0
GROUP BY ALL
ORDER BY ghosts DESC
