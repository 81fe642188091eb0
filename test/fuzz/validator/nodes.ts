// Checks Nodes: taints, amounts, pod CIDRs, and fields that can be set once.
import { isIP } from 'node:net'
import { duplicatesIn, format, isEqualJson, type Report } from './findings.ts'
import { isLabelValue, isQualifiedName } from './names.ts'
import { isNegative } from './quantity.ts'

const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']

export function checkNode({ spec = {}, status = {} }: any, report: Report, old?: any): void {
  const taints: any[] = spec.taints ?? []
  for (const [i, { key, value = '', effect }] of taints.entries()) {
    if (!isQualifiedName(key)) report(`spec.taints[${i}].key`, `${format(key)} is not a valid label key`)
    if (!isLabelValue(value)) report(`spec.taints[${i}].value`, `${format(value)} is not a valid label value`)
    if (!EFFECTS.includes(effect)) report(`spec.taints[${i}].effect`, `${format(effect)} is not a valid effect`)
  }
  if (duplicatesIn(taints.map(({ key, effect }) => `${effect} ${key}`)).length > 0)
    report('spec.taints', 'duplicate taint')
  for (const field of ['capacity', 'allocatable']) {
    for (const [name, amount] of Object.entries(status[field] ?? {})) {
      if (isNegative(amount)) report(`status.${field}[${name}]`, 'negative')
    }
  }
  checkPodRanges(spec, report)
  if (!old) return
  const oldSpec = old.spec ?? {}
  if (oldSpec.podCIDRs?.length > 0 && !isEqualJson(oldSpec.podCIDRs, spec.podCIDRs))
    report('spec.podCIDRs', 'can be set once')
  if (oldSpec.providerID && oldSpec.providerID !== spec.providerID) report('spec.providerID', 'can be set once')
}

function checkPodRanges({ podCIDR, podCIDRs = [] }: any, report: Report): void {
  for (const range of podCIDRs) if (!isRange(range)) report('spec.podCIDRs', `${format(range)} is not a valid range`)
  const families = podCIDRs.map((range: string) => isIP(range.split('/')[0] ?? ''))
  if (duplicatesIn(families).length > 0) report('spec.podCIDRs', 'two ranges of one family')
  if ((podCIDR ?? '') !== (podCIDRs[0] ?? '')) report('spec.podCIDR', 'is not the first of podCIDRs')
}

function isRange(text: string): boolean {
  const [address = '', bits = '', ...rest] = text.split('/')
  const family = isIP(stripLeadingZeros(address))
  return rest.length === 0 && family !== 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128)
}

/** Removes leading zeros of octets, which are accepted for compatibility. */
const stripLeadingZeros = (address: string): string =>
  address.includes(':') ? address : address.replace(/\b0+(?=\d)/g, '')
