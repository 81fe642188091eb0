// The fields of ResourceQuota. Its rules are in resource-quota.ts and quota-scopes.ts.
import { type Infer, list, map, object, oneOf, opt, ptr, quantity, req, string } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'

const quotaScope = oneOf(
  'Terminating',
  'NotTerminating',
  'BestEffort',
  'NotBestEffort',
  'PriorityClass',
  'CrossNamespacePodAffinity',
  'VolumeAttributesClass',
)

export const scopedResourceSelectorRequirement = object(
  'io.k8s.api.core.v1.ScopedResourceSelectorRequirement',
  'Counts only objects whose property has, or has not, one of some values.',
  {
    scopeName: req(1, quotaScope, 'Property that is looked at, such as PriorityClass or VolumeAttributesClass.'),
    operator: req(2, oneOf('In', 'NotIn', 'Exists', 'DoesNotExist'), 'How the property relates to the values.'),
    values: opt(3, list(string), 'Values for In and NotIn; none for Exists and DoesNotExist.'),
  },
)

export const scopeSelector = object(
  'io.k8s.api.core.v1.ScopeSelector',
  'Counts only objects that meet all of these requirements.',
  {
    matchExpressions: opt(1, list(scopedResourceSelectorRequirement), 'The requirements; all must be met.'),
  },
  { atomic: true },
)

export const resourceQuotaSpec = object(
  'io.k8s.api.core.v1.ResourceQuotaSpec',
  'How much a namespace may use, and of which objects.',
  {
    hard: opt(
      1,
      map(quantity),
      'Upper bound for each resource; limits.iops bounds the sum over claims, requests.iops each single claim.',
    ),
    scopes: opt(2, list(quotaScope), 'Count only objects with all of these properties. Cannot change.'),
    scopeSelector: ptr(3, scopeSelector, 'Count only objects that this selects.'),
  },
)

export const resourceQuotaStatus = object(
  'io.k8s.api.core.v1.ResourceQuotaStatus',
  'What is in force and what is used.',
  {
    hard: opt(1, map(quantity), 'Bounds in force now.'),
    used: opt(2, map(quantity), 'Amounts used now.'),
  },
)

export const resourceQuota = object(
  'io.k8s.api.core.v1.ResourceQuota',
  'Bounds what all objects of a namespace may use together.',
  {
    metadata: req(1, objectMeta, 'Name, namespace, labels, annotations and the rest of what every object carries.'),
    spec: opt(2, resourceQuotaSpec, 'How much may be used.'),
    status: opt(3, resourceQuotaStatus, 'What is in force and what is used.'),
  },
)

export type ResourceQuota = Infer<typeof resourceQuota>
