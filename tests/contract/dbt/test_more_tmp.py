from dbt.tests.adapter.basic.test_incremental import BaseIncremental, BaseIncrementalNotSchemaChange, BaseIncrementalBadStrategy
from dbt.tests.adapter.empty.test_empty import BaseTestEmpty, BaseTestEmptyInlineSourceRef, MetadataWithEmptyFlag
from dbt.tests.adapter.relations.test_changing_relation_type import BaseChangeRelationTypeValidator
from dbt.tests.adapter.relations.test_dropping_schema_named import BaseDropSchemaNamed
from dbt.tests.adapter.aliases.test_aliases import BaseAliases, BaseAliasErrors, BaseSameAliasDifferentSchemas
from dbt.tests.adapter.store_test_failures_tests.test_store_test_failures import BaseStoreTestFailures
from dbt.tests.adapter.caching.test_caching import BaseCachingLowercaseModel, BaseCachingUppercaseModel, BaseCachingSelectedSchemaOnly, BaseNoPopulateCache
from dbt.tests.adapter.query_comment.test_query_comment import BaseQueryComments
from dbt.tests.adapter.utils.test_source_freshness_custom_info import BaseCalculateFreshnessMethod
class TestI(BaseIncremental): pass
class TestI2(BaseIncrementalNotSchemaChange): pass
class TestI3(BaseIncrementalBadStrategy): pass
class TestE(BaseTestEmpty): pass
class TestE2(BaseTestEmptyInlineSourceRef): pass
class TestE3(MetadataWithEmptyFlag): pass
class TestC(BaseChangeRelationTypeValidator): pass
class TestD(BaseDropSchemaNamed): pass
class TestA(BaseAliases): pass
class TestA2(BaseAliasErrors): pass
class TestA3(BaseSameAliasDifferentSchemas): pass
class TestS(BaseStoreTestFailures): pass
class TestCa(BaseCachingLowercaseModel): pass
class TestCa2(BaseCachingUppercaseModel): pass
class TestCa3(BaseCachingSelectedSchemaOnly): pass
class TestCa4(BaseNoPopulateCache): pass
class TestQ(BaseQueryComments): pass
class TestF(BaseCalculateFreshnessMethod): pass
