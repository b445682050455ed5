-- Which evidence is missing, or could not be read?
SELECT 'coverage' AS found_in, source, subject, kind, missing AS what, count(*) AS times,
       min(hour) AS first_hour, max(hour) AS last_hour
FROM coverage
WHERE missing IS NOT NULL
GROUP BY ALL
UNION ALL
SELECT 'unread_records', source, coalesce(path, host), 'logs', reason, count(*),
       min(day), max(day)
FROM unread_records
GROUP BY ALL
ORDER BY times DESC
