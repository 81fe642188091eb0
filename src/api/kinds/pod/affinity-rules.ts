// Validates node affinity, pod affinity and topology spread constraints of a pod.
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
  const required = nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  const at = `${field}.nodeAffinity`
  if (required) validateNodeSelector(required, `${at}.requiredDuringSchedulingIgnoredDuringExecution`, errors)
  const preferred = nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
  for (const [index, { weight, preference }] of preferred.entries()) {
    const termField = `${at}.preferredDuringSchedulingIgnoredDuringExecution[${index}]`
    validateWeight(weight, termField, errors)
    validateNodeSelectorTerm(preference, { field: `${termField}.preference`, anyValues: true }, errors)
  }
  if (podAffinity) validatePodAffinity(podAffinity, `${field}.podAffinity`, errors)
  if (podAntiAffinity) validatePodAffinity(podAntiAffinity, `${field}.podAntiAffinity`, errors)
}

function validatePodAffinity(affinity: Infer<typeof podAffinity>, field: string, errors: FieldErrors): void {
  for (const [index, term] of (affinity.requiredDuringSchedulingIgnoredDuringExecution ?? []).entries()) {
    validatePodTerm(term, `${field}.requiredDuringSchedulingIgnoredDuringExecution[${index}]`, errors)
  }
  for (const [index, term] of (affinity.preferredDuringSchedulingIgnoredDuringExecution ?? []).entries()) {
    const at = `${field}.preferredDuringSchedulingIgnoredDuringExecution[${index}]`
    validateWeight(term.weight, at, errors)
    validatePodTerm(term.podAffinityTerm, `${at}.podAffinityTerm`, errors)
  }
}

function validatePodTerm(term: Infer<typeof podAffinityTerm>, field: string, errors: FieldErrors): void {
  validateLabelSelector(term.labelSelector, `${field}.labelSelector`, errors)
  validateLabelSelector(term.namespaceSelector, `${field}.namespaceSelector`, errors)
  for (const name of term.namespaces ?? []) errors.invalidAll(`${field}.namespace`, name, dns1123LabelProblems(name))
  if (term.topologyKey === '') errors.required(`${field}.topologyKey`, 'can not be empty')
  errors.invalidAll(`${field}.topologyKey`, term.topologyKey, qualifiedNameProblems(term.topologyKey))
  for (const part of ['matchLabelKeys', 'mismatchLabelKeys'] as const) {
    for (const [index, key] of (term[part] ?? []).entries()) {
      errors.invalidAll(`${field}.${part}[${index}]`, key, qualifiedNameProblems(key))
    }
  }
}

function validateWeight(weight: number, field: string, errors: FieldErrors): void {
  if (weight <= 0 || weight > 100) errors.invalid(`${field}.weight`, weight, 'must be in the range 1-100')
}

type Spread = Infer<typeof topologySpreadConstraint>

const UNSATISFIABLE = ['DoNotSchedule', 'ScheduleAnyway']
const INCLUSION = ['Honor', 'Ignore']

export function validateSpread(constraints: readonly Spread[], field: string, errors: FieldErrors): void {
  const lastUse = new Map(constraints.map((constraint, index) => [spreadKey(constraint), index]))
  for (const [index, constraint] of constraints.entries()) {
    const { topologyKey, whenUnsatisfiable, maxSkew, minDomains, labelSelector } = constraint
    const at = `${field}[${index}]`
    if (maxSkew <= 0) errors.invalid(`${at}.maxSkew`, maxSkew, 'must be greater than 0')
    if (topologyKey === '') errors.required(`${at}.topologyKey`, 'can not be empty')
    if (!UNSATISFIABLE.includes(whenUnsatisfiable)) {
      errors.notSupported(`${at}.whenUnsatisfiable`, whenUnsatisfiable, UNSATISFIABLE)
    }
    const key = spreadKey(constraint)
    if (lastUse.get(key) !== index) errors.duplicate(`${at}.{topologyKey, whenUnsatisfiable}`, key)
    if (minDomains !== undefined && minDomains <= 0) {
      errors.invalid(`${at}.minDomains`, minDomains, 'must be greater than 0')
    }
    if (minDomains !== undefined && whenUnsatisfiable !== 'DoNotSchedule') {
      errors.invalid(
        `${at}.minDomains`,
        minDomains,
        `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${whenUnsatisfiable}`,
      )
    }
    for (const part of ['nodeAffinityPolicy', 'nodeTaintsPolicy'] as const) {
      const policy = constraint[part]
      if (policy !== undefined && !INCLUSION.includes(policy)) errors.notSupported(`${at}.${part}`, policy, INCLUSION)
    }
    validateLabelSelector(labelSelector, `${at}.labelSelector`, errors)
  }
}

const spreadKey = ({ topologyKey, whenUnsatisfiable }: Spread): string => `{${topologyKey}, ${whenUnsatisfiable}}`
