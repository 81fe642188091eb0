// Scale (autoscaling/v1), the body of the `scale` subresource: a stateful set's desired and actual replicas, and its
// selector as text.
import { type Infer, int32, object, opt, req, string } from '../../schema.ts'
import { formatLabelSelector, labelSelectorFromObject } from '../../selectors.ts'
import { objectMeta } from '../shared/meta-schema.ts'
import type { StatefulSet } from './stateful-set-schema.ts'

const scaleSpec = object('io.k8s.api.autoscaling.v1.ScaleSpec', 'Desired number of replicas.', {
  replicas: opt(1, int32, 'Desired number of replicas.'),
})

const scaleStatus = object('io.k8s.api.autoscaling.v1.ScaleStatus', 'Actual number of replicas.', {
  replicas: req(1, int32, 'Actual number of replicas.'),
  selector: opt(2, string, 'Selector of the pods as text, such as app=web.'),
})

export const scale = object('io.k8s.api.autoscaling.v1.Scale', 'The number of replicas of an object.', {
  metadata: req(1, objectMeta, 'Metadata of the scaled object.'),
  spec: opt(2, scaleSpec, 'Desired number of replicas.'),
  status: opt(3, scaleStatus, 'Actual number of replicas.'),
})

export type Scale = Infer<typeof scale>

export const SCALE_TYPE = { kind: 'Scale', apiVersion: 'autoscaling/v1' } as const

/** Returns the scale of a stored set. */
export function readScale({ metadata, spec, status }: Readonly<StatefulSet>): Scale {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata
  return {
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: spec?.replicas ? { replicas: spec.replicas } : {},
    status: {
      replicas: status?.replicas ?? 0,
      selector: formatLabelSelector(labelSelectorFromObject(spec?.selector)),
    },
  }
}
