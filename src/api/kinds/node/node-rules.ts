// Validates nodes and changes to nodes. podCIDRs and providerID are immutable once they are set, externalID always.
import type { FieldErrors } from '../../field-errors.ts'
import { labelValueProblems, qualifiedNameProblems } from '../../names.ts'
import { ipFamilyOf, validateCIDR } from '../../network-addresses.ts'
import { validateTaintEffect } from '../pod/toleration-rules.ts'
import { validateResourceAmount } from '../shared/resource-names.ts'
import type { Node, Taint } from './node-schema.ts'

export function validateNode(node: Node, errors: FieldErrors): void {
  validateTaints(node.spec?.taints ?? [], errors)
  validatePodCIDRs(node.spec?.podCIDRs ?? [], errors)
  validateNodeStatus(node, errors)
}

export function validateNodeUpdate(next: Node, old: Node, errors: FieldErrors): void {
  const oldCIDRs = old.spec?.podCIDRs ?? []
  const nextCIDRs = next.spec?.podCIDRs ?? []
  if (oldCIDRs.length > 0 && oldCIDRs.join() !== nextCIDRs.join()) {
    errors.forbidden('spec.podCIDRs', 'node updates may not change podCIDR except from "" to valid')
  }
  const oldProviderID = old.spec?.providerID ?? ''
  const nextProviderID = next.spec?.providerID ?? ''
  if (oldProviderID !== '' && nextProviderID !== oldProviderID) {
    const change = nextProviderID === '' ? 'cleared' : 'modified'
    errors.invalid('spec.providerID', null, `field cannot be ${change} once set`)
  }
  if ((next.spec?.externalID ?? '') !== (old.spec?.externalID ?? '')) {
    errors.forbidden('spec.externalID', 'may not be updated')
  }
}

export function validateNodeStatus({ status }: Node, errors: FieldErrors): void {
  validateAmounts(status?.capacity, 'status.capacity', errors)
  validateAmounts(status?.allocatable, 'status.allocatable', errors)
  const seenAddresses = new Set<string>()
  for (const [index, address] of (status?.addresses ?? []).entries()) {
    const key = JSON.stringify([address.type, address.address])
    if (seenAddresses.has(key)) errors.duplicate(`status.addresses[${index}]`, address)
    seenAddresses.add(key)
  }
}

// As in Kubernetes, errors of taints have the field metadata.taints, because clients match on it.
function validateTaints(taints: readonly Taint[], errors: FieldErrors): void {
  const seenTaints = new Set<string>()
  taints.forEach((taint, i) => {
    const field = `metadata.taints[${i}]`
    errors.invalidAll(`${field}.key`, taint.key, qualifiedNameProblems(taint.key))
    const valueProblems = labelValueProblems(taint.value ?? '')
    if (valueProblems.length > 0) errors.invalid(`${field}.value`, taint.value, valueProblems.join(';'))
    if ((taint.effect as string) === '') errors.required(`${field}.effect`)
    else validateTaintEffect(taint.effect, `${field}.effect`, errors)
    const key = `${taint.effect}:${taint.key}`
    if (seenTaints.has(key)) errors.duplicate(field, taint)
    seenTaints.add(key)
  })
}

function validateAmounts(amounts: Record<string, string> | undefined, field: string, errors: FieldErrors): void {
  for (const [name, amount] of Object.entries(amounts ?? {})) {
    validateResourceAmount(name, amount, `${field}.${name}`, errors)
  }
}

function validatePodCIDRs(ranges: readonly string[], errors: FieldErrors): void {
  ranges.forEach((range, i) => {
    validateCIDR(range, `spec.podCIDRs[${i}]`, errors)
  })
  const families = new Set(ranges.map(ipFamilyOf))
  const isDualStack = ranges.length === 2 && families.has(4) && families.has(6)
  if (ranges.length > 1 && !isDualStack) {
    errors.invalid('spec.podCIDRs', ranges, 'may specify no more than one CIDR for each IP family')
  }
}
