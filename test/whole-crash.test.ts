// Tests the whole system on loop devices: every component in its own process, a random workload, and SIGKILL to random
// components, including the server.
//   WHOLE_CRASH_SECONDS=300 npx vitest run test/whole-crash.test.ts
import { describe } from 'vitest'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { createCluster } from './whole-crash/cluster.ts'
import { addCrashTest } from './whole-crash/crash-test.ts'

const skipMessage = skipReason(await probeThisMachine(), ['loop', 'mount', 'xfs'])
const seconds = Number(process.env.WHOLE_CRASH_SECONDS ?? 20)

describe.skipIf(skipMessage)(`the whole system under SIGKILL${skipMessage ? ` (${skipMessage})` : ''}`, () => {
  addCrashTest({
    name: 'the whole system under SIGKILL',
    title: `SYS-1 PROV-12 REX-8 loses nothing and leaks nothing in ${seconds} s of kills`,
    seconds,
    writesPerSecondMin: 3,
    createCluster,
  })
})
