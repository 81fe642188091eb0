// Checks the whole lifecycle of volumes through the controllers and the node agent, with and without faults.
import { runLifecycle } from '../bench/lifecycle.ts'
import { type Check, violate } from '../check.ts'
import { requireOnlineExpansion } from './requests.ts'

const NEEDS = { controller: ['CREATE_DELETE_VOLUME'], node: [], bench: true } as const
const MANY_VOLUMES = 6
/** 4 EiB, which quantities can express. */
const IMPOSSIBLE_BYTES = 2 ** 62
/** How long, in virtual time, a claim must remain pending. */
const PENDING_MS = 10 * 60_000

export const lifecycleChecks: readonly Check[] = [
  {
    id: 'life',
    title: 'a volume completes its lifecycle: provision, publish, expand, modify, unpublish and delete',
    rule: {
      section: 'Volume Lifecycle',
      level: 'must',
      text: 'A volume is created, published to a node, staged, published to a target, changed, and all of it undone in reverse order; every step completes, if necessary after retries.',
    },
    needs: NEEDS,
    run: (context) => runLifecycle(context),
  },
  {
    id: 'life-reply-lost',
    title: 'a volume survives the loss of the first reply of every call',
    rule: {
      section: 'Timeouts; idempotency of every call',
      level: 'must',
      text: 'If a reply is lost after the call succeeded, the caller repeats the call, which succeeds with the same result; no volume is created twice or left behind.',
    },
    needs: NEEDS,
    run: (context) => runLifecycle(context, { fault: 'reply lost' }),
  },
  {
    id: 'life-sent-twice',
    title: 'every call of the lifecycle succeeds when it is repeated',
    rule: {
      section: 'Timeouts; idempotency of every call',
      level: 'must',
      text: 'A call that succeeded succeeds when it is repeated with the same fields, and CreateVolume returns the same volume.',
    },
    needs: NEEDS,
    run: (context) => runLifecycle(context, { fault: 'sent twice' }),
  },
  {
    id: 'life-concurrent',
    title: 'two concurrent calls of every kind succeed or are aborted',
    rule: {
      section: 'Concurrency; Error Scheme',
      level: 'must',
      text: 'A caller that lost its state may send a call twice at the same time: each succeeds or fails with ABORTED.',
    },
    needs: NEEDS,
    run: (context) => runLifecycle(context, { fault: 'sent concurrently' }),
  },
  {
    id: 'life-cancelled',
    title: 'a volume survives the cancellation of every first call',
    rule: {
      section: 'Timeouts',
      level: 'must',
      text: 'A cancelled call may or may not have an effect; the repeated call continues or returns the finished result.',
    },
    needs: NEEDS,
    run: (context) => runLifecycle(context, { fault: 'cancelled' }),
  },
  {
    id: 'life-slow',
    title: 'a volume survives a deadline that passes before every first reply',
    rule: {
      section: 'Timeouts',
      level: 'must',
      text: 'A call may succeed after the caller gave up; the repeated call returns the finished result.',
    },
    needs: NEEDS,
    run: (context) => runLifecycle(context, { fault: 'slow' }),
  },
  {
    id: 'life-many',
    title: 'several volumes complete their lifecycle concurrently',
    rule: {
      section: 'Concurrency',
      level: 'must',
      text: 'Calls for different volumes run at the same time, and each volume completes its lifecycle.',
    },
    needs: NEEDS,
    run: (context) => runLifecycle(context, { volumes: MANY_VOLUMES }),
  },
  {
    id: 'life-two-pods',
    title: 'a volume is published at two targets of a node',
    rule: {
      section: 'NodePublishVolume; RPC Interactions and Reference Counting',
      level: 'should',
      text: 'A volume may be published at several targets of one node, and is unstaged only after the last one; Kubernetes does so for several pods with one ReadWriteOnce claim.',
    },
    needs: NEEDS,
    run: (context) => runLifecycle(context, { podsPerVolume: 2 }),
  },
  {
    id: 'life-expand-and-modify',
    title: 'a volume is expanded and modified at the same time',
    rule: {
      section: 'ControllerExpandVolume; ControllerModifyVolume',
      level: 'must',
      text: 'A volume in use can be expanded and modified; one change does not undo or block the other.',
    },
    needs: { ...NEEDS, controller: ['CREATE_DELETE_VOLUME', 'EXPAND_VOLUME', 'MODIFY_VOLUME'], attributes: true },
    async run(context) {
      requireOnlineExpansion(context)
      await runLifecycle(context, { changesTogether: true })
    },
  },
  {
    id: 'life-exhausted',
    title: 'a claim beyond all storage stays pending, and leaves nothing behind',
    rule: {
      section: 'CreateVolume Errors',
      level: 'must',
      text: 'A volume that cannot be created fails with a final code; when the caller gives up, there is no volume.',
    },
    needs: NEEDS,
    async run(context) {
      const bench = await context.startBench()
      const { objects, reach, wait, readWarnings } = bench
      try {
        await objects.createClaim('large', IMPOSSIBLE_BYTES)
        await objects.createPod('large-pod', 'large')
        await wait(PENDING_MS)
        if (await objects.isBound('large')) violate(`a claim of ${IMPOSSIBLE_BYTES} bytes got a volume`)
        if ((await readWarnings()).length === 0) violate('no event says why the claim is pending')
        await objects.deletePod('large-pod')
        await reach('delete the pod of the pending claim', () => objects.isPodDeleted('large-pod'))
        await objects.deleteClaim('large')
        await reach('delete the pending claim', () => objects.isDeleted('large'))
      } finally {
        await bench.stop()
      }
      const [leftover] = context.leftovers()
      if (leftover) violate(`after the claim was deleted, ${leftover}`)
    },
  },
  {
    id: 'life-killed-between',
    title: 'a volume survives a driver that is killed after every call',
    rule: {
      section: 'Timeouts; idempotency of every call; Supervised Lifecycle Management',
      level: 'must',
      text: 'A driver may be terminated at any time. The results of completed calls survive, and the repeated call succeeds after the restart.',
    },
    needs: { ...NEEDS, restart: true },
    run: (context) => runLifecycle(context, { fault: 'killed after' }),
  },
  {
    id: 'life-killed-during',
    title: 'a volume survives a driver that is killed during every call',
    rule: {
      section: 'Timeouts; idempotency of every call; Supervised Lifecycle Management',
      level: 'must',
      text: 'A driver may be terminated during a call. After the restart, the repeated call completes the work.',
    },
    needs: { ...NEEDS, restart: true },
    run: (context) => runLifecycle(context, { fault: 'killed during' }),
  },
]
