import { describe, expect, it } from 'vitest'
import type { OwnerReference } from '../../api/kinds/shared/meta-schema.ts'
import { podReference, setReference } from './identity.ts'
import { type ClaimOwnersInput, hasConflictingController, planClaimOwners } from './plan-claim-owners.ts'
import { createClaim, createPod, createSet } from './stateful-sets.fixture.ts'

type Policy = 'Retain' | 'Delete'

function inputOf(
  [whenScaled, whenDeleted]: readonly [Policy, Policy],
  owners: OwnerReference[],
  isScaledDown: boolean,
): ClaimOwnersInput {
  const set = createSet({ persistentVolumeClaimRetentionPolicy: { whenScaled, whenDeleted } })
  return { claim: createClaim(set, 0, owners), set, pod: createPod(set, 0), podName: 'web-0', isScaledDown }
}

const SET = setReference(createSet())
const POD = podReference(createPod(createSet(), 0))
const OTHER: OwnerReference = { apiVersion: 'v1', kind: 'ConfigMap', name: 'c', uid: 'c-uid' }
const CONTROLLER: OwnerReference = { ...OTHER, controller: true }

describe('planClaimOwners', () => {
  it.each<[string, readonly [Policy, Policy], boolean, OwnerReference | undefined]>([
    ['no owner', ['Retain', 'Retain'], false, undefined],
    ['no owner', ['Retain', 'Retain'], true, undefined],
    ['the set as owner', ['Retain', 'Delete'], false, SET],
    ['the set as owner', ['Retain', 'Delete'], true, SET],
    ['no owner', ['Delete', 'Retain'], false, undefined],
    ['the pod as owner', ['Delete', 'Retain'], true, POD],
    ['the set as owner', ['Delete', 'Delete'], false, SET],
    ['the pod as owner', ['Delete', 'Delete'], true, POD],
  ])('SYS-27 plans %s for whenScaled and whenDeleted %j (pod scaled down: %j)', (_, policy, isScaledDown, owner) => {
    const wantedOwners = owner ? [owner] : []
    for (const owners of [[], [SET], [POD], [SET, POD]]) {
      const isCurrent = JSON.stringify(owners) === JSON.stringify(wantedOwners)
      expect(planClaimOwners(inputOf(policy, owners, isScaledDown))).toEqual(isCurrent ? undefined : wantedOwners)
      expect(planClaimOwners(inputOf(policy, [OTHER, ...owners], isScaledDown))).toEqual(
        isCurrent ? undefined : [OTHER, ...wantedOwners],
      )
    }
  })

  it('SYS-27 leaves a claim with a reference to an earlier set or pod of the name to the garbage collector', () => {
    for (const stale of [
      { ...SET, uid: 'gone' },
      { ...POD, uid: 'gone' },
    ])
      expect(planClaimOwners(inputOf(['Delete', 'Delete'], [stale], true))).toBeUndefined()
  })

  it('SYS-27 does not compete with another controller of the claim, and reports it', () => {
    const input = inputOf(['Delete', 'Delete'], [CONTROLLER], false)
    expect([planClaimOwners(input), hasConflictingController(input)]).toEqual([undefined, true])
    expect(planClaimOwners(inputOf(['Delete', 'Delete'], [CONTROLLER, { ...SET, controller: false }], false))).toEqual([
      CONTROLLER,
    ])
    expect(hasConflictingController(inputOf(['Retain', 'Retain'], [CONTROLLER], false))).toBe(false)
  })
})
