// Validates the node affinity, pod affinity and topology spread constraints of a pod.
import type { FieldErrors } from '../../field-errors.ts'
import { validateLabelSelector } from '../../meta.ts'
import { dns1123LabelProblems, qualifiedNameProblems } from '../../names.ts'
import type { Infer } from '../../schema.ts'
import { validateNodeSelector, validateNodeSelectorTerm } from '../shared/node-selector-rules.ts'
import type { affinity, podAffinity, podAffinityTerm, topologySpreadConstraint } from './pod-schema.ts'

export function validateAffinity(
  { nodeAffinity, podAffinity, podAntiAffinity }: Infer<typeof affinity>,
  field: string,
  errors: FieldErrors,
): void {
  const requiredSelector = nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  const affinityField = `${field}.nodeAffinity`
  if (requiredSelector)
    validateNodeSelector(requiredSelector, `${affinityField}.requiredDuringSchedulingIgnoredDuringExecution`, errors)
  const preferredTerms = nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
  for (const [index, { weight, preference }] of preferredTerms.entries()) {
    const termField = `${affinityField}.preferredDuringSchedulingIgnoredDuringExecution[${index}]`
    validateWeight(weight, termField, errors)
    validateNodeSelectorTerm(preference, { field: `${termField}.preference`, allowsInvalidValues: true }, errors)
  }
  if (podAffinity) validatePodAffinity(podAffinity, `${field}.podAffinity`, errors)
  if (podAntiAffinity) validatePodAffinity(podAntiAffinity, `${field}.podAntiAffinity`, errors)
}

function validatePodAffinity(affinity: Infer<typeof podAffinity>, field: string, errors: FieldErrors): void {
  for (const [index, term] of (affinity.requiredDuringSchedulingIgnoredDuringExecution ?? []).entries()) {
    validatePodTerm(term, `${field}.requiredDuringSchedulingIgnoredDuringExecution[${index}]`, errors)
  }
  for (const [index, term] of (affinity.preferredDuringSchedulingIgnoredDuringExecution ?? []).entries()) {
    const termField = `${field}.preferredDuringSchedulingIgnoredDuringExecution[${index}]`
    validateWeight(term.weight, termField, errors)
    validatePodTerm(term.podAffinityTerm, `${termField}.podAffinityTerm`, errors)
  }
}

function validatePodTerm(term: Infer<typeof podAffinityTerm>, field: string, errors: FieldErrors): void {
  validateLabelSelector(term.labelSelector, `${field}.labelSelector`, errors)
  validateLabelSelector(term.namespaceSelector, `${field}.namespaceSelector`, errors)
  for (const name of term.namespaces ?? []) errors.invalidAll(`${field}.namespace`, name, dns1123LabelProblems(name))
  if (term.topologyKey === '') errors.required(`${field}.topologyKey`, 'can not be empty')
  errors.invalidAll(`${field}.topologyKey`, term.topologyKey, qualifiedNameProblems(term.topologyKey))
  for (const fieldName of ['matchLabelKeys', 'mismatchLabelKeys'] as const) {
    for (const [index, key] of (term[fieldName] ?? []).entries()) {
      errors.invalidAll(`${field}.${fieldName}[${index}]`, key, qualifiedNameProblems(key))
    }
  }
}

function validateWeight(weight: number, field: string, errors: FieldErrors): void {
  if (weight <= 0 || weight > 100) errors.invalid(`${field}.weight`, weight, 'must be in the range 1-100')
}

type SpreadConstraint = Infer<typeof topologySpreadConstraint>

const UNSATISFIABLE_ACTIONS = ['DoNotSchedule', 'ScheduleAnyway']
const INCLUSION_POLICIES = ['Honor', 'Ignore']

export function validateSpreadConstraints(
  constraints: readonly SpreadConstraint[],
  field: string,
  errors: FieldErrors,
): void {
  const lastIndexes = new Map(constraints.map((constraint, index) => [spreadKey(constraint), index]))
  for (const [index, constraint] of constraints.entries()) {
    const { topologyKey, whenUnsatisfiable, maxSkew, minDomains, labelSelector } = constraint
    const constraintField = `${field}[${index}]`
    if (maxSkew <= 0) errors.invalid(`${constraintField}.maxSkew`, maxSkew, 'must be greater than 0')
    if (topologyKey === '') errors.required(`${constraintField}.topologyKey`, 'can not be empty')
    if (!UNSATISFIABLE_ACTIONS.includes(whenUnsatisfiable)) {
      errors.notSupported(`${constraintField}.whenUnsatisfiable`, whenUnsatisfiable, UNSATISFIABLE_ACTIONS)
    }
    const key = spreadKey(constraint)
    if (lastIndexes.get(key) !== index) errors.duplicate(`${constraintField}.{topologyKey, whenUnsatisfiable}`, key)
    if (minDomains !== undefined && minDomains <= 0) {
      errors.invalid(`${constraintField}.minDomains`, minDomains, 'must be greater than 0')
    }
    if (minDomains !== undefined && whenUnsatisfiable !== 'DoNotSchedule') {
      errors.invalid(
        `${constraintField}.minDomains`,
        minDomains,
        `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${whenUnsatisfiable}`,
      )
    }
    for (const fieldName of ['nodeAffinityPolicy', 'nodeTaintsPolicy'] as const) {
      const policy = constraint[fieldName]
      if (policy !== undefined && !INCLUSION_POLICIES.includes(policy))
        errors.notSupported(`${constraintField}.${fieldName}`, policy, INCLUSION_POLICIES)
    }
    validateLabelSelector(labelSelector, `${constraintField}.labelSelector`, errors)
  }
}

const spreadKey = ({ topologyKey, whenUnsatisfiable }: SpreadConstraint): string =>
  `{${topologyKey}, ${whenUnsatisfiable}}`
