// A day of people: users in their namespaces and administrators, each act drawn by its weight. What follows from an act
// (a class comes back, a growth is given up) is planned with it.
import type { Dice } from './dice.ts'
import type { Draft } from './draft.ts'
import { changeAttributesClass, changeClass, changeConfigMap, changeNode } from './make-admin-acts.ts'
import { createClaim, deleteClaim, goBack, grow, lower, modify, touchClaim, writeNonsense } from './make-claim-acts.ts'
import { createPod, deletePod, touchPod } from './make-pod-acts.ts'
import { changeLimitRange, createQuota, deleteQuota, editQuota } from './make-quota-acts.ts'
import { changePolicy, createVolume, deleteVolume, giveBack, importVolume, touchVolume } from './make-volume-acts.ts'
import type { PeopleAct } from './plan.ts'

type Making = (draft: Draft) => PeopleAct

const ACTS: readonly (readonly [weight: number, make: Making])[] = [
  [18, createClaim],
  [8, deleteClaim],
  [9, grow],
  [2, lower],
  [8, modify],
  [2, goBack],
  [3, touchClaim],
  [3, writeNonsense],
  [14, createPod],
  [9, deletePod],
  [1, touchPod],
  [3, importVolume],
  [2, createVolume],
  [2, deleteVolume],
  [3, changePolicy],
  [4, giveBack],
  [1, touchVolume],
  [2, changeClass],
  [2, changeAttributesClass],
  [3, createQuota],
  [3, editQuota],
  [2, deleteQuota],
  [2, changeLimitRange],
  [3, changeNode],
  [3, changeConfigMap],
]

export const makePeopleAct = (draft: Draft, dice: Dice): PeopleAct => dice.weighted(ACTS)(draft)
