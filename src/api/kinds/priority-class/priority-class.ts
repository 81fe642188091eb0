// Declares PriorityClass: the priority of pods, by name.
import { ageColumn, nameColumn } from '../../columns.ts'
import { defineKind } from '../../kind.ts'
import { dns1123SubdomainProblems } from '../../names.ts'
import { validateImmutableField } from '../shared/changed-fields.ts'
import { builtInProblem, SYSTEM_PREFIX } from './built-in-classes.ts'
import { type PriorityClass, priorityClass } from './priority-class-schema.ts'

const USER_VALUE_MAX = 1_000_000_000
const POLICIES: readonly string[] = ['PreemptLowerPriority', 'Never']

export const priorityClassKind = defineKind<PriorityClass>({
  group: 'scheduling.k8s.io',
  versions: ['v1'],
  kind: 'PriorityClass',
  plural: 'priorityclasses',
  singular: 'priorityclass',
  shortNames: ['pc'],
  namespaced: false,
  type: priorityClass,

  nameErrors: dns1123SubdomainProblems,
  validate(object, errors) {
    const { metadata, value, preemptionPolicy } = object
    if (metadata.name?.startsWith(SYSTEM_PREFIX)) {
      const problem = builtInProblem(object)
      if (problem !== undefined) {
        errors.forbidden(
          'metadata.name',
          `priority class names with '${SYSTEM_PREFIX}' prefix are reserved for system use only. error: ${problem}`,
        )
      }
    } else if (value > USER_VALUE_MAX) {
      errors.forbidden('value', `maximum allowed value of a user defined priority is ${USER_VALUE_MAX}`)
    }
    if (preemptionPolicy === undefined) return
    if ((preemptionPolicy as string) === '') errors.required('preemptionPolicy')
    else if (!POLICIES.includes(preemptionPolicy)) errors.notSupported('preemptionPolicy', preemptionPolicy, POLICIES)
  },
  validateUpdate(next, old, errors) {
    if (next.value !== old.value) errors.forbidden('value', 'may not be changed in an update.')
    const { type } = priorityClass.fields.preemptionPolicy
    const [oldValue, newValue] = [old.preemptionPolicy, next.preemptionPolicy]
    validateImmutableField({ field: 'preemptionPolicy', type, oldValue, newValue }, errors)
  },

  columns: [
    nameColumn,
    {
      name: 'Value',
      type: 'integer',
      doc: 'Priority of the pods of this class.',
      cell: (object) => object.value,
    },
    {
      name: 'Global-Default',
      type: 'boolean',
      doc: 'Whether pods without a class get this one.',
      cell: (object) => object.globalDefault ?? false,
    },
    ageColumn,
    {
      name: 'PreemptionPolicy',
      type: 'string',
      doc: 'Whether pods of lower priority may be preempted.',
      cell: (object) => object.preemptionPolicy ?? 'PreemptLowerPriority',
    },
  ],
  deleteReturnsObject: true,
})
