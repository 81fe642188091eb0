// The schema of ControllerRevision: a state of a controller's object that can be restored.
import { type Infer, int64, object, opt, rawJson, req } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'

export const controllerRevision = object(
  'io.k8s.api.apps.v1.ControllerRevision',
  'An earlier or the current state of the object of a controller, such as the template of a stateful set.',
  {
    metadata: req(1, objectMeta, 'Standard object metadata.'),
    data: opt(2, rawJson, 'The state, as a strategic merge patch. Immutable.'),
    revision: req(3, int64, 'Number of the revision; the highest one is the current state.'),
  },
)

export type ControllerRevision = Infer<typeof controllerRevision>
