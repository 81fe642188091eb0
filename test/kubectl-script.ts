// The steps of the kubectl script in order. Steps use objects that earlier steps created.
import { applySteps } from './kubectl/apply.ts'
import { authSteps } from './kubectl/auth.ts'
import { createSteps } from './kubectl/create.ts'
import { deleteSteps } from './kubectl/delete.ts'
import { describeSteps } from './kubectl/describe.ts'
import { discoverySteps } from './kubectl/discovery.ts'
import { errorSteps } from './kubectl/errors.ts'
import { getSteps } from './kubectl/get.ts'
import { tableSteps } from './kubectl/get-table.ts'
import { serverSideApplySteps } from './kubectl/server-side-apply.ts'
import type { Step } from './kubectl/step.ts'
import { updateSteps } from './kubectl/update-object.ts'
import { waitSteps } from './kubectl/wait.ts'
import { watchSteps } from './kubectl/watch.ts'

export const SCRIPT: readonly Step[] = [
  ...createSteps,
  ...tableSteps,
  ...getSteps,
  ...describeSteps,
  ...discoverySteps,
  ...errorSteps,
  ...authSteps,
  ...watchSteps,
  ...applySteps,
  ...serverSideApplySteps,
  ...updateSteps,
  ...waitSteps,
  ...deleteSteps,
]
