// The schema of PriorityClass. The rules are in priority-class.ts.
import { boolean, type Infer, int32, object, oneOf, opt, ptr, req, string } from '../../schema.ts'
import { objectMeta } from '../shared/meta-schema.ts'

export const priorityClass = object(
  'io.k8s.api.scheduling.v1.PriorityClass',
  'The priority of pods, by name: the scheduler places pods of a higher priority first and may preempt pods of a lower one.',
  {
    metadata: req(1, objectMeta, 'Standard object metadata.'),
    value: req(
      2,
      int32,
      'Priority of the pods of this class; at most 1000000000, except for the built-in classes; immutable.',
    ),
    globalDefault: opt(3, boolean, 'Whether pods without a class get this one. Only one class can be the default.'),
    description: opt(4, string, 'When to use the class, for users.'),
    preemptionPolicy: ptr(
      5,
      oneOf('PreemptLowerPriority', 'Never'),
      'Whether pods of lower priority may be preempted for pods of this class; immutable.',
      { default: 'PreemptLowerPriority' },
    ),
  },
)

export type PriorityClass = Infer<typeof priorityClass>
