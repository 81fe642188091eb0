// The schemas of DeleteOptions, the body of a delete, and Eviction, which contains it.
import { boolean, int64, list, object, opt, ptr, req, string } from '../../schema.ts'
import { objectMeta } from './meta-schema.ts'

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1'

const preconditions = object(`${META}.Preconditions`, 'Preconditions of a delete.', {
  uid: ptr(1, string, 'The object must have this UID.'),
  resourceVersion: ptr(2, string, 'The object must have this resourceVersion.'),
})

export const deleteOptions = object(`${META}.DeleteOptions`, 'Options of a delete.', {
  gracePeriodSeconds: ptr(
    1,
    int64,
    'For pods: seconds until the pod is deleted; 0 means immediately. Default: terminationGracePeriodSeconds of the pod.',
  ),
  preconditions: ptr(2, preconditions, 'If they are not met, the request fails with 409 Conflict.'),
  orphanDependents: ptr(3, boolean, 'Deprecated: use propagationPolicy. true means Orphan, false means Background.'),
  propagationPolicy: ptr(
    4,
    string,
    'Handling of dependents: Orphan keeps them, Background deletes them later, Foreground deletes them first.',
  ),
  dryRun: opt(5, list(string), 'With "All" the request is validated but not stored.', { list: 'atomic' }),
})

export const eviction = object('io.k8s.api.policy.v1.Eviction', 'Evicts a pod from its node.', {
  metadata: req(1, objectMeta, 'Name and namespace of the pod.'),
  deleteOptions: ptr(2, deleteOptions, 'Options of the delete.'),
})
