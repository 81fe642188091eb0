// The schema of Lease, which leader election and node heartbeats use. The rules are in lease.ts.
import { type Infer, int32, microTime, object, opt, ptr, req, string } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'

const leaseSpec = object('io.k8s.api.coordination.v1.LeaseSpec', 'The holder of a lease and its terms.', {
  holderIdentity: ptr(1, string, 'Current holder; empty if there is none.'),
  leaseDurationSeconds: ptr(2, int32, 'Time after the last renewal until other candidates may take the lease.'),
  acquireTime: ptr(3, microTime, 'When the current holder acquired the lease.'),
  renewTime: ptr(4, microTime, 'When the current holder last renewed the lease.'),
  leaseTransitions: ptr(5, int32, 'Number of changes of the holder.'),
  strategy: ptr(6, string, 'Strategy of coordinated leader election.'),
  preferredHolder: ptr(7, string, 'Candidate that should hold the lease; the current holder is to release it.'),
})

export const lease = object(
  'io.k8s.api.coordination.v1.Lease',
  'A role that only one holder has at a time, such as that of the leader.',
  {
    metadata: req(1, objectMeta, 'Standard object metadata.'),
    spec: opt(2, leaseSpec, 'The holder of the lease and its terms.'),
  },
)

export type Lease = Infer<typeof lease>
