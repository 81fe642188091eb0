import { expect, it } from 'vitest'
import { aClaimRow } from './claim.fixture.ts'
import { statusOfClaim } from './claim-status.ts'

it('SYS-13 shows a claim that waits for a pod as neutral, and a failed one as a problem', () => {
  const pending = aClaimRow('data', { phase: 'Pending' })
  expect(statusOfClaim(pending, { state: 'waiting', reason: 'WaitForFirstConsumer' })).toEqual({
    word: 'Pending',
    tone: 'wait',
  })
  expect(statusOfClaim(pending, { state: 'failed', reason: 'ProvisioningFailed' })).toEqual({
    word: 'Pending',
    tone: 'bad',
  })
  expect(statusOfClaim(pending, undefined).tone).toBe('wait')
})

it.each([
  [{}, 'Bound', 'ok'],
  [{ deletedMs: 1 }, 'Terminating', 'busy'],
  [{ phase: 'Lost' }, 'Lost', 'bad'],
  [{ requestBytes: 20 * 1024 ** 3 }, 'Expanding', 'busy'],
  [{ resizeStatus: 'NodeResizePending' }, 'Expanding', 'busy'],
  [{ resizeStatus: 'ControllerResizeInfeasible' }, 'Expansion failed', 'bad'],
  [{ modifyStatus: 'InProgress' }, 'Changing', 'busy'],
  [{ modifyStatus: 'Infeasible' }, 'Change failed', 'bad'],
  [{ health: 'Degraded' }, 'Degraded', 'warn'],
  [{ health: 'DataLoss' }, 'DataLoss', 'bad'],
])('the status of a claim with %o is %s', (fields, word, tone) => {
  expect(statusOfClaim(aClaimRow('data', fields), undefined)).toEqual({ word, tone })
})
