// The schema of ResourceQuota. The rules are in resource-quota.ts and quota-scopes.ts.
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

const scopedResourceSelectorRequirement = object(
  'io.k8s.api.core.v1.ScopedResourceSelectorRequirement',
  'A requirement on one property of the counted objects.',
  {
    scopeName: req(1, quotaScope, 'Property, such as PriorityClass or VolumeAttributesClass.'),
    operator: req(2, oneOf('In', 'NotIn', 'Exists', 'DoesNotExist'), 'Comparison of the property with the values.'),
    values: opt(3, list(string), 'Values for In and NotIn; none for Exists and DoesNotExist.'),
  },
)

export const scopeSelector = object(
  'io.k8s.api.core.v1.ScopeSelector',
  'Selects the objects that a quota counts.',
  {
    matchExpressions: opt(1, list(scopedResourceSelectorRequirement), 'The requirements; all must be met.'),
  },
  { atomic: true },
)

const resourceQuotaSpec = object(
  'io.k8s.api.core.v1.ResourceQuotaSpec',
  'Limits of a namespace and the objects that they apply to.',
  {
    hard: opt(
      1,
      map(quantity),
      'Limit by resource. limits.iops and limits.throughput limit the sum over all claims; requests.iops and ' +
        'requests.throughput limit each single claim.',
    ),
    scopes: opt(2, list(quotaScope), 'Count only objects that match all of these scopes; immutable.'),
    scopeSelector: ptr(3, scopeSelector, 'Count only objects that match this selector.'),
  },
)

const resourceQuotaStatus = object('io.k8s.api.core.v1.ResourceQuotaStatus', 'Enforced limits and current usage.', {
  hard: opt(1, map(quantity), 'Enforced limits by resource.'),
  used: opt(2, map(quantity), 'Current usage by resource.'),
})

export const resourceQuota = object(
  'io.k8s.api.core.v1.ResourceQuota',
  'Limits the total resource usage of a namespace.',
  {
    metadata: req(1, objectMeta, 'Standard object metadata.'),
    spec: opt(2, resourceQuotaSpec, 'The limits.'),
    status: opt(3, resourceQuotaStatus, 'Enforced limits and current usage.'),
  },
)

export type ResourceQuota = Infer<typeof resourceQuota>
