// What must hold once nothing moves any more. Pure: what the store and the drivers hold goes in, what is wrong comes out.
import type { ClassParameters } from './attributes.ts'
import type { Court, Problem } from './court.ts'
import { attachmentProblems } from './quiet-attachments.ts'
import { capacityProblems } from './quiet-capacity.ts'
import { claimProblems } from './quiet-claims.ts'
import { podProblems } from './quiet-pods.ts'
import { storageProblems, volumeProblems } from './quiet-volumes.ts'
import type { Told } from './told.ts'

export interface Quiet extends Pick<Court, 'stage' | 'view' | 'past'> {
  readonly classes: ClassParameters
  readonly told: Told
}

export const problemsOf = (quiet: Quiet): Problem[] => [
  ...storageProblems(quiet),
  ...[...quiet.view.volumes.values()].flatMap((volume) => volumeProblems(volume, quiet)),
  ...[...quiet.view.claims.values()].flatMap((claim) => claimProblems(claim, quiet)),
  ...[...quiet.view.pods.values()].flatMap((pod) => podProblems(pod, quiet)),
  ...attachmentProblems(quiet),
  ...capacityProblems(quiet),
  ...quotaProblems(quiet),
  ...otherProblems(quiet),
]

/**
 * Whether they are right is judged at every commit; here, that they have been counted. Where commits go one by one the quota
 * controller takes the server for somebody else's, and the next write that needs a quota counts it.
 */
const quotaProblems = ({ stage, view }: Quiet): Problem[] =>
  [...(stage.setup.commits === 'atomic' ? view.quotas : [])].flatMap(([key, { spec, status }]) => {
    const uncounted = Object.keys(spec?.hard ?? {}).filter((name) => status?.used?.[name] === undefined)
    if (uncounted.length === 0) return []
    const text = `quota ${key} does not say what is used of ${uncounted}: ${JSON.stringify({ spec, status })}`
    return [{ rule: 'quota', text }]
  })

/** Namespaces and attributes classes that are going, and stay for nothing. */
function otherProblems({ view }: Quiet): Problem[] {
  const problems: Problem[] = []
  for (const [name, { metadata, status }] of view.namespaces) {
    if (!metadata.deletionTimestamp) continue
    const left = [...view.claims.keys(), ...view.pods.keys()].filter((key) => key.startsWith(`${name}/`))
    if (left.length === 0)
      problems.push({ rule: 'not gone', text: `namespace ${name} is going, and nothing is left in it` })
    else if (!status?.conditions?.some(({ status: is }) => is === 'True')) {
      problems.push({ rule: 'says not why', text: `namespace ${name} is going, and does not say what is left in it` })
    }
  }
  for (const [name, { metadata }] of view.attributesClasses) {
    if (!metadata.deletionTimestamp) continue
    const isUsed =
      [...view.volumes.values()].some(({ spec }) => spec?.volumeAttributesClassName === name) ||
      [...view.claims.values()].some(({ spec, status }) =>
        [
          spec?.volumeAttributesClassName,
          status?.currentVolumeAttributesClassName,
          status?.modifyVolumeStatus?.targetVolumeAttributesClassName,
        ].includes(name),
      )
    if (!isUsed) problems.push({ rule: 'not gone', text: `attributes class ${name} is going, and nobody uses it` })
  }
  return problems
}
