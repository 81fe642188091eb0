// Node: valid taints, countable amounts, immutable addresses and identities.
import { isIP } from 'node:net'
import { repeated, type Say, same, show } from './findings.ts'
import { isLabelValue, isQualifiedName } from './names.ts'
import { isNegative } from './quantity.ts'

const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']

export function checkNode({ spec = {}, status = {} }: any, say: Say, old?: any): void {
  const taints: any[] = spec.taints ?? []
  for (const [i, { key, value = '', effect }] of taints.entries()) {
    if (!isQualifiedName(key)) say(`spec.taints[${i}].key`, `${show(key)} is no label key`)
    if (!isLabelValue(value)) say(`spec.taints[${i}].value`, `${show(value)} is no label value`)
    if (!EFFECTS.includes(effect)) say(`spec.taints[${i}].effect`, `${show(effect)} is no effect`)
  }
  if (repeated(taints.map(({ key, effect }) => `${effect} ${key}`)).length > 0) say('spec.taints', 'a taint twice')
  for (const field of ['capacity', 'allocatable']) {
    for (const [name, amount] of Object.entries(status[field] ?? {})) {
      if (isNegative(amount)) say(`status.${field}[${name}]`, 'negative')
    }
  }
  checkPodRanges(spec, say)
  if (!old) return
  const before = old.spec ?? {}
  if (before.podCIDRs?.length > 0 && !same(before.podCIDRs, spec.podCIDRs)) say('spec.podCIDRs', 'can be set once')
  if (before.providerID && before.providerID !== spec.providerID) say('spec.providerID', 'can be set once')
}

function checkPodRanges({ podCIDR, podCIDRs = [] }: any, say: Say): void {
  for (const range of podCIDRs) if (!isRange(range)) say('spec.podCIDRs', `${show(range)} is no range`)
  const families = podCIDRs.map((range: string) => isIP(range.split('/')[0] ?? ''))
  if (repeated(families).length > 0) say('spec.podCIDRs', 'two ranges of one family')
  if ((podCIDR ?? '') !== (podCIDRs[0] ?? '')) say('spec.podCIDR', 'is not the first of podCIDRs')
}

function isRange(text: string): boolean {
  const [address = '', bits = '', ...rest] = text.split('/')
  const family = isIP(unpadded(address))
  return rest.length === 0 && family !== 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128)
}

/** Octets with leading zeros are accepted for compatibility. */
const unpadded = (address: string): string => (address.includes(':') ? address : address.replace(/\b0+(?=\d)/g, ''))
