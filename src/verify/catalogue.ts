// The catalogue of all checks, in the order in which they run. docs/reference/verify-checks.md lists them.
import type { Check } from './check.ts'
import { attachVolumeChecks } from './checks/attach-volume.ts'
import { changeVolumeChecks } from './checks/change-volume.ts'
import { createVolumeChecks } from './checks/create-volume.ts'
import { deleteVolumeChecks } from './checks/delete-volume.ts'
import { identityChecks } from './checks/identity.ts'
import { lifecycleChecks } from './checks/lifecycle.ts'
import { nodeVolumeChecks } from './checks/node-volume.ts'
import { queryVolumesChecks } from './checks/query-volumes.ts'
import { textChecks } from './checks/texts.ts'
import { validateVolumeChecks } from './checks/validate-volume.ts'

export const CHECKS: readonly Check[] = [
  ...identityChecks,
  ...createVolumeChecks,
  ...deleteVolumeChecks,
  ...validateVolumeChecks,
  ...attachVolumeChecks,
  ...queryVolumesChecks,
  ...changeVolumeChecks,
  ...nodeVolumeChecks,
  ...textChecks,
  ...lifecycleChecks,
]

/** Returns the checks whose id matches a pattern, in which `*` stands for any text. Without patterns, returns all checks. */
export function selectChecks(patterns: readonly string[]): readonly Check[] {
  if (patterns.length === 0) return CHECKS
  const expressions = patterns.map((pattern) => new RegExp(`^${pattern.split('*').map(escapeText).join('.*')}$`))
  return CHECKS.filter(({ id }) => expressions.some((expression) => expression.test(id)))
}

const escapeText = (text: string) => text.replace(/[.+?^${}()|[\]\\]/g, '\\$&')
