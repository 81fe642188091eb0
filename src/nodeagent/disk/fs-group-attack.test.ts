// Applies fsGroup to a volume whose pod replaces a directory with a link to a directory of the host.
import { describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from '../../../test/allowed-skips.ts'
import { startSwapAttack } from '../../base/trees/swap-attack.fixture.ts'
import { applyFsGroup } from './fs-group.ts'

const skipMessage = skipReason(await probeThisMachine(), ['mount'])
const APPLICATIONS = 100 * Number(process.env.SCALE ?? 1)

describe.skipIf(skipMessage)(`applyFsGroup under attack${skipMessage ? ` (${skipMessage})` : ''}`, () => {
  it('changes no file of the machine while a pod replaces a directory with a link', {
    timeout: 600_000,
  }, async () => {
    const attack = await startSwapAttack()
    try {
      const machineBefore = await attack.readHost()
      await attack.repeat(APPLICATIONS, async (index) => {
        const group = 2_000 + (index % 2) // another group each time, so that every file is changed again
        await applyFsGroup(attack.volume, { group, readOnly: false, onlyOnRootMismatch: false })
      })
      expect(await attack.readHost()).toEqual(machineBefore)
    } finally {
      await attack.dispose()
    }
  })
})
