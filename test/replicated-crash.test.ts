// Tests the replicated control plane on loop devices: three etcd members, three servers behind a load balancer, replicas of
// controllers and schedulers, and three nodes, each in its own processes. While users change objects, the test kills random
// components with SIGKILL, freezes them with SIGSTOP, or cuts their network.
//   REPLICATED_CRASH_SECONDS=600 npx vitest run test/replicated-crash.test.ts
import { describe } from 'vitest'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { etcdSkipReason } from './helpers/etcd.ts'
import { seededRandom } from './helpers/random.ts'
import { seedFrom } from './helpers/seed.ts'
import { addCrashTest } from './whole-crash/crash-test.ts'
import { createReplicatedCluster } from './whole-crash/replicated-cluster.ts'

const skipMessage = skipReason(await probeThisMachine(), ['loop', 'mount', 'xfs']) ?? etcdSkipReason()
const seconds = Number(process.env.REPLICATED_CRASH_SECONDS ?? 20)

describe.skipIf(skipMessage)(
  `the replicated control plane under faults${skipMessage ? ` (${skipMessage})` : ''}`,
  () => {
    addCrashTest({
      name: 'the replicated control plane under faults',
      title: `SYS-8 loses nothing, repeats nothing and leaks nothing in ${seconds} s of kills, freezes and network cuts`,
      seconds,
      writesPerSecondMin: 1, // many writes wait for a frozen server
      createCluster: (dir) => createReplicatedCluster(dir, seededRandom(seedFrom('CRASH_SEED') + 2)),
    })
  },
)
