// The schema of LimitRange. The rules are in limit-range.ts and limit-order.ts.
import { type Infer, list, map, object, opt, quantity, req, string } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'

const limitRangeItem = object('io.k8s.api.core.v1.LimitRangeItem', 'Bounds and defaults for one type of object.', {
  type: req(1, string, 'Type of object: Pod, Container or PersistentVolumeClaim.'),
  max: opt(2, map(quantity), 'Maximum amounts per object, by resource.'),
  min: opt(3, map(quantity), 'Minimum amounts per object, by resource.'),
  default: opt(4, map(quantity), 'Limits of objects that have none.'),
  defaultRequest: opt(5, map(quantity), 'Requests of objects that have none.'),
  maxLimitRequestRatio: opt(6, map(quantity), 'Maximum ratio of limit to request, by resource.'),
})

export type LimitRangeItem = Infer<typeof limitRangeItem>

const limitRangeSpec = object('io.k8s.api.core.v1.LimitRangeSpec', 'The bounds of a LimitRange.', {
  limits: req(1, list(limitRangeItem), 'Bounds and defaults, one item per type of object.'),
})

export const limitRange = object(
  'io.k8s.api.core.v1.LimitRange',
  'Bounds and defaults for single objects of a namespace.',
  {
    metadata: req(1, objectMeta, 'Standard object metadata.'),
    spec: opt(2, limitRangeSpec, 'The bounds and defaults.'),
  },
)

export type LimitRange = Infer<typeof limitRange>
