// Checks the state of a system at rest. Pure: the contents of the store and the drivers in, problems out.
import type { ClassParameters, ExpectedAttributes } from '../attributes.ts'
import type { CheckContext, Problem } from '../context.ts'
import type { RecordedEvents } from '../recorded-events.ts'
import { attachmentProblems } from './attachments.ts'
import { capacityProblems } from './capacity.ts'
import { claimProblems } from './claims.ts'
import { podProblems } from './pods.ts'
import { statefulSetProblems } from './stateful-sets.ts'
import { journalProblems, storageProblems, volumeProblems } from './volumes.ts'

export interface AtRestContext extends Pick<CheckContext, 'system' | 'view' | 'exemptions'> {
  readonly classes: ClassParameters
  readonly expectedAttributes: ExpectedAttributes
  readonly events: RecordedEvents
}

export const problemsOf = (context: AtRestContext): Problem[] => [
  ...storageProblems(context),
  ...journalProblems(context),
  ...[...context.view.volumes.values()].flatMap((volume) => volumeProblems(volume, context)),
  ...[...context.view.claims.values()].flatMap((claim) => claimProblems(claim, context)),
  ...[...context.view.pods.values()].flatMap((pod) => podProblems(pod, context)),
  ...attachmentProblems(context),
  ...capacityProblems(context),
  ...quotaProblems(context),
  ...deletionProblems(context),
  ...[...context.view.sets.values()].flatMap((set) => statefulSetProblems(set, context)),
]

/**
 * Checks that every quota has been counted. ../quotas.ts checks the figures at every commit. Without atomic commits the
 * quota controller leaves counting to the server, which counts a quota with the next write that needs it.
 */
const quotaProblems = ({ system, view }: AtRestContext): Problem[] =>
  [...(system.setup.commits === 'atomic' ? view.quotas : [])].flatMap(([key, { spec, status }]) => {
    const uncountedResources = Object.keys(spec?.hard ?? {}).filter((name) => status?.used?.[name] === undefined)
    if (uncountedResources.length === 0) return []
    const text = `quota ${key} reports no usage of ${uncountedResources}: ${JSON.stringify({ spec, status })}`
    return [{ rule: 'quota', text }]
  })

/** Returns the namespaces and attributes classes whose deletion does not complete. */
function deletionProblems({ view }: AtRestContext): Problem[] {
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
