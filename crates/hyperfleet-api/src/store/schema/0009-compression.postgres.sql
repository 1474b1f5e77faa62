-- Documents are compressed by LZ4 where the server has it: by the default method, reports spend a sixth of the CPU of PostgreSQL on it.
DO $$ BEGIN
  EXECUTE 'ALTER TABLE resources ALTER COLUMN spec SET COMPRESSION lz4, ALTER COLUMN state SET COMPRESSION lz4,
    ALTER COLUMN object SET COMPRESSION lz4';
  EXECUTE 'ALTER TABLE changes ALTER COLUMN object SET COMPRESSION lz4';
EXCEPTION WHEN feature_not_supported OR syntax_error THEN NULL;
END $$;
