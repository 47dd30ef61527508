"""SQLAlchemy: `create_engine("olapdb:///warehouse")`, `olapdb://` for one in memory."""
