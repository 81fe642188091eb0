// How something is asked to go: the options of a delete, and the eviction of a pod.
import { boolean, int64, list, object, opt, ptr, req, string } from '../../schema.ts'
import { objectMeta } from './meta-schema.ts'

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1'

const preconditions = object(`${META}.Preconditions`, 'What must still hold of an object for it to be deleted.', {
  uid: ptr(1, string, 'The object must have this unique ID.'),
  resourceVersion: ptr(2, string, 'The object must be at this version.'),
})

export const deleteOptions = object(`${META}.DeleteOptions`, 'How an object is to be deleted.', {
  gracePeriodSeconds: ptr(
    1,
    int64,
    'How long the object may take to go; 0 means at once. Without it the kind decides.',
  ),
  preconditions: ptr(2, preconditions, 'If these do not hold, nothing is deleted and the answer is 409.'),
  orphanDependents: ptr(3, boolean, 'Old form of propagationPolicy: true means Orphan, false Background.'),
  propagationPolicy: ptr(
    4,
    string,
    'What becomes of the dependents: Orphan leaves them, Background deletes them later, Foreground deletes them first.',
  ),
  dryRun: opt(5, list(string), 'With "All" everything is checked and nothing is stored.', { list: 'atomic' }),
})

export const eviction = object(
  'io.k8s.api.policy.v1.Eviction',
  'Asks for a pod to leave its node, unless that would hurt its application.',
  {
    metadata: req(1, objectMeta, 'Names the pod.'),
    deleteOptions: ptr(2, deleteOptions, 'How the pod is to be deleted.'),
  },
)
