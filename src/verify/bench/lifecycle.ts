// Runs volumes through their whole lifecycle on a bench: provision, attach, stage, publish, expand, modify, unpublish, unstage,
// detach, delete. Steps that the driver does not support are skipped. Throws Violation at the first step that does not complete,
// or if anything is left at the end.
import { type CheckContext, violate } from '../check.ts'
import type { Bench, BenchOptions } from './bench.ts'

export interface LifecycleOptions extends BenchOptions {
  /** Default: 1. */
  readonly volumes?: number
  /** Number of pods that use each volume. Default: 1. */
  readonly podsPerVolume?: number
  /** Whether to expand and modify concurrently. Default: false. */
  readonly changesTogether?: boolean
}

export async function runLifecycle(context: CheckContext, options: LifecycleOptions = {}): Promise<void> {
  const { volumes: volumeCount = 1, podsPerVolume = 1 } = options
  const claims = Array.from({ length: volumeCount }, (_, index) => `claim-${index + 1}`)
  const pods = claims.flatMap((claim) =>
    Array.from({ length: podsPerVolume }, (_, index) => ({ claim, name: `${claim}-pod-${index + 1}` })),
  )
  const bench = await context.startBench(options)
  try {
    await provisionAndPublish(context, bench, claims, pods)
    await expandAndModify(context, bench, claims, options)
    await unpublishAndDetach(context, bench, pods)
    if (canExpandOnlyOffline(context)) await expandOffline(context, bench, claims)
    await deleteVolumes(bench, claims)
  } finally {
    await bench.stop()
  }
  const [leftover] = context.leftovers()
  if (leftover) violate(`after the lifecycle of the volume, ${leftover}`)
}

interface LifecyclePod {
  readonly claim: string
  readonly name: string
}

async function provisionAndPublish(
  { settings }: CheckContext,
  { objects, reach }: Bench,
  claims: readonly string[],
  pods: readonly LifecyclePod[],
): Promise<void> {
  for (const claim of claims) await objects.createClaim(claim, settings.sizeBytes)
  for (const { name, claim } of pods) await objects.createPod(name, claim)
  await reach('provision the volume of every claim', () => every(claims, objects.isBound))
  for (const claim of claims)
    if (!(await objects.hasVolumeSize(claim, settings.sizeBytes)))
      violate(`CreateVolume returned a volume that is smaller than ${settings.sizeBytes} bytes`)
  await reach('publish every volume to its pods', () => every(pods, ({ name }) => objects.isRunning(name)))
}

const canExpandOnline = ({ profile }: CheckContext) =>
  profile.controller.has('EXPAND_VOLUME') && profile.expansion.has('ONLINE')
/** A driver that advertises neither ONLINE nor OFFLINE may support only the latter. */
const canExpandOnlyOffline = ({ profile }: CheckContext) =>
  profile.controller.has('EXPAND_VOLUME') && !profile.expansion.has('ONLINE')

async function expandAndModify(
  context: CheckContext,
  { objects, reach }: Bench,
  claims: readonly string[],
  { changesTogether = false }: LifecycleOptions,
): Promise<void> {
  const { profile, settings } = context
  const canModify = profile.controller.has('MODIFY_VOLUME') && settings.attributes !== undefined
  const isExpanded = () => every(claims, (claim) => objects.hasSize(claim, settings.expandedBytes))
  const isModified = () => every(claims, objects.hasAttributes)
  const requestSizes = () => forEach(claims, (claim) => objects.requestSize(claim, settings.expandedBytes))
  if (canExpandOnline(context)) {
    await requestSizes()
    if (!changesTogether) await reach('expand every volume and its file system', isExpanded)
  }
  if (canModify) await forEach(claims, objects.requestAttributes)
  if (changesTogether && canExpandOnline(context)) await reach('expand every volume while it is modified', isExpanded)
  if (canModify) await reach('modify every volume', isModified)
}

async function expandOffline(context: CheckContext, bench: Bench, claims: readonly string[]): Promise<void> {
  const { settings } = context
  const { objects, reach } = bench
  for (const claim of claims) await objects.requestSize(claim, settings.expandedBytes)
  await reach('expand every volume that is not in use', () =>
    every(claims, (claim) => objects.hasVolumeSize(claim, settings.expandedBytes)),
  )
  const pods = claims.map((claim) => ({ claim, name: `${claim}-after-expansion` }))
  for (const { name, claim } of pods) await objects.createPod(name, claim)
  await reach('publish every expanded volume', () => every(pods, ({ name }) => objects.isRunning(name)))
  await reach('expand every file system', () =>
    every(claims, (claim) => objects.hasSize(claim, settings.expandedBytes)),
  )
  await unpublishAndDetach(context, bench, pods)
}

async function unpublishAndDetach(
  context: CheckContext,
  { objects, reach }: Bench,
  pods: readonly LifecyclePod[],
): Promise<void> {
  for (const { name } of pods) await objects.deletePod(name)
  await reach(
    'unpublish and unstage every volume',
    async () => !context.hasNodeVolumes() && (await every(pods, ({ name }) => objects.isPodDeleted(name))),
  )
  await reach('detach every volume', objects.hasNoAttachments)
}

async function deleteVolumes({ objects, reach }: Bench, claims: readonly string[]): Promise<void> {
  for (const claim of claims) await objects.deleteClaim(claim)
  await reach('delete every volume', () => every(claims, objects.isDeleted))
}

async function every<T>(items: readonly T[], test: (item: T) => Promise<boolean>): Promise<boolean> {
  for (const item of items) if (!(await test(item))) return false
  return true
}

async function forEach<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  for (const item of items) await run(item)
}
