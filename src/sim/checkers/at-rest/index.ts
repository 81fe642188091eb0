// Checks the state of a system at rest. Pure: the contents of the store and the drivers in, problems out.
import type { ClassParameters, ExpectedAttributes } from '../attributes.ts'
import type { CheckContext, Problem } from '../context.ts'
import type { RecordedEvents } from '../recorded-events.ts'
import { findAttachmentProblems } from './attachments.ts'
import { findCapacityProblems } from './capacity.ts'
import { findClaimProblems } from './claims.ts'
import { findPodProblems } from './pods.ts'
import { findStatefulSetProblems } from './stateful-sets.ts'
import { findJournalProblems, findStorageProblems, findVolumeProblems } from './volumes.ts'

export interface AtRestContext extends Pick<CheckContext, 'system' | 'view' | 'exemptions'> {
  readonly classes: ClassParameters
  readonly expectedAttributes: ExpectedAttributes
  readonly events: RecordedEvents
}

export const findProblems = (context: AtRestContext): Problem[] => [
  ...findStorageProblems(context),
  ...findJournalProblems(context),
  ...[...context.view.volumes.values()].flatMap((volume) => findVolumeProblems(volume, context)),
  ...[...context.view.claims.values()].flatMap((claim) => findClaimProblems(claim, context)),
  ...[...context.view.pods.values()].flatMap((pod) => findPodProblems(pod, context)),
  ...findAttachmentProblems(context),
  ...findCapacityProblems(context),
  ...findQuotaProblems(context),
  ...findDeletionProblems(context),
  ...[...context.view.sets.values()].flatMap((set) => findStatefulSetProblems(set, context)),
]

/**
 * Checks that every quota has been counted; ../quotas.ts checks the figures at every commit. Without atomic commits nothing is
 * checked: the quota controller leaves counting to the server, which counts a quota with the next write that needs it.
 */
const findQuotaProblems = ({ system, view }: AtRestContext): Problem[] =>
  [...(system.setup.commits === 'atomic' ? view.quotas : [])].flatMap(([key, { spec, status }]) => {
    const uncountedResources = Object.keys(spec?.hard ?? {}).filter((name) => status?.used?.[name] === undefined)
    if (uncountedResources.length === 0) return []
    const text = `quota ${key} reports no usage of ${uncountedResources}: ${JSON.stringify({ spec, status })}`
    return [{ rule: 'quota', text }]
  })

/** Returns problems of the namespaces and attributes classes that are being deleted. */
function findDeletionProblems({ view }: AtRestContext): Problem[] {
  const problems: Problem[] = []
  for (const [name, { metadata, status }] of view.namespaces) {
    if (!metadata.deletionTimestamp) continue
    const remainingKeys = [...view.claims.keys(), ...view.pods.keys()].filter((key) => key.startsWith(`${name}/`))
    if (remainingKeys.length === 0)
      problems.push({ rule: 'not deleted', text: `namespace ${name} is still being deleted, although it is empty` })
    else if (!status?.conditions?.some(({ status: conditionStatus }) => conditionStatus === 'True')) {
      problems.push({
        rule: 'no reason',
        text: `namespace ${name} is being deleted, but does not report what is left in it`,
      })
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
    if (!isUsed)
      problems.push({
        rule: 'not deleted',
        text: `attributes class ${name} is still being deleted, although it is unused`,
      })
  }
  return problems
}
