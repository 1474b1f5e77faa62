-- Reasons of conditions, for searches.
ALTER TABLE resource_conditions ADD COLUMN reason TEXT COLLATE "C";
UPDATE resource_conditions m SET reason = c.value ->> 'reason'
FROM resources r CROSS JOIN LATERAL jsonb_array_elements(COALESCE(r.state::jsonb -> 'conditions', '[]')) AS c (value)
WHERE r.id = m.resource_id AND c.value ->> 'type' = m.type;
CREATE INDEX resource_conditions_by_reason ON resource_conditions (type, reason, resource_id);
