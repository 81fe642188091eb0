// The schema of PodTemplateSpec: metadata and spec of the pods that a controller creates. pod-template-rules.ts validates it.
import { type Infer, object, opt, req } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'
import { podSpec } from './pod-schema.ts'

export const podTemplateSpec = object(
  'io.k8s.api.core.v1.PodTemplateSpec',
  'Metadata and spec of the pods that a controller creates.',
  {
    metadata: opt(1, objectMeta, 'Labels and annotations of the pods.'),
    spec: req(2, podSpec, 'Desired state of the pods.'),
  },
)

export type PodTemplateSpec = Infer<typeof podTemplateSpec>
