// The dependencies that the functions of the stateful set controller share.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { ControllerRevision } from '../../api/kinds/controller-revision/controller-revision-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { StatefulSet } from '../../api/kinds/stateful-set/stateful-set-schema.ts'
import type { Clock } from '../../base/clock.ts'
import type { Client } from '../../client/index.ts'
import type { Cache, EventRecorder } from '../../runtime/index.ts'

export interface StatefulSetContext {
  readonly client: Client
  readonly clock: Clock
  readonly sets: Cache<StatefulSet>
  readonly revisions: Cache<ControllerRevision>
  readonly pods: Cache<Pod>
  readonly claims: Cache<PersistentVolumeClaim>
  readonly events: Pick<EventRecorder, 'record'>
}
