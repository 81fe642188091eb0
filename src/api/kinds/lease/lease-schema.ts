// Leases: who holds a role, until when. Leader election and node heartbeats stand on them.
// Rules are in kinds/lease.ts.
import { type Infer, int32, microTime, object, opt, ptr, req, string } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'

export const leaseSpec = object('io.k8s.api.coordination.v1.LeaseSpec', 'Who holds a lease, and on what terms.', {
  holderIdentity: ptr(1, string, 'Who holds the lease now; empty if nobody does.'),
  leaseDurationSeconds: ptr(2, int32, 'How long after the last renewal others wait before they take it.'),
  acquireTime: ptr(3, microTime, 'When the holder got the lease.'),
  renewTime: ptr(4, microTime, 'When the holder last renewed it.'),
  leaseTransitions: ptr(5, int32, 'How often the lease has changed hands.'),
  strategy: ptr(6, string, 'How the next holder is picked when that is coordinated.'),
  preferredHolder: ptr(7, string, 'Who should get the lease next; the holder is to give it up.'),
})

export const lease = object(
  'io.k8s.api.coordination.v1.Lease',
  'A role that one at a time may hold, such as being the leader.',
  {
    metadata: req(1, objectMeta, 'Name, namespace, labels, annotations and the rest of what every object carries.'),
    spec: opt(2, leaseSpec, 'Who holds the lease, and on what terms.'),
  },
)

export type Lease = Infer<typeof lease>
