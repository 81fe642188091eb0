// Runs csi-sanity, the conformance suite for CSI drivers, from the PATH or built from its Go module.
import { execFile } from 'node:child_process'
import { chmod, copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const MODULE = 'github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity@v5.5.0'

/** Returns the path of the program, or why it is not available. */
export async function findCsiSanity(): Promise<{ readonly program: string } | { readonly missing: string }> {
  const lookup = await run('sh', ['-c', 'command -v csi-sanity']).catch(() => undefined)
  if (lookup) return { program: lookup.stdout.trim() }
  const bin = join(tmpdir(), 'stowage-csi-sanity')
  try {
    await run('go', ['install', MODULE], { env: { ...process.env, GOBIN: bin } })
    return { program: join(bin, 'csi-sanity') }
  } catch (error) {
    return { missing: `csi-sanity is not installed and cannot be built: ${(error as Error).message.slice(0, 300)}` }
  }
}

export interface SanityResult {
  readonly passed: number
  readonly failed: readonly string[]
  /** Title and printed reason of each skipped spec. */
  readonly skipped: readonly { readonly title: string; readonly reason: string }[]
}

export interface SanityOptions {
  readonly program: string
  readonly endpoint: string
  readonly flags: readonly string[]
  readonly mutableParameters: Readonly<Record<string, string>>
  readonly uid?: number
}

export async function runCsiSanity({
  program,
  endpoint,
  flags,
  mutableParameters,
  uid,
}: SanityOptions): Promise<SanityResult> {
  const dir = await mkdtemp(join(tmpdir(), 'stowage-sanity-'))
  try {
    const owner = uid === undefined ? {} : { uid, gid: uid }
    const executable = uid === undefined ? program : await copyInto(dir, program)
    if (uid !== undefined) await run('chown', ['-R', `${uid}:${uid}`, dir])
    const parametersPath = join(dir, 'mutable.yaml')
    await writeFile(parametersPath, JSON.stringify(mutableParameters), { mode: 0o644 }) // JSON is valid YAML
    const reportPath = join(dir, 'report.json')
    const args = [
      `--csi.endpoint=${endpoint}`,
      `--csi.mountdir=${join(dir, 'mount')}`,
      `--csi.stagingdir=${join(dir, 'staging')}`,
      `--csi.testvolumemutableparameters=${parametersPath}`,
      `--ginkgo.json-report=${reportPath}`,
      ...flags,
    ]
    const { output } = await run(executable, args, { cwd: dir, maxBuffer: 64 * 1024 * 1024, ...owner }).then(
      ({ stdout }) => ({ output: stdout }),
      (error: Error & { stdout?: string; stderr?: string }) => ({
        output: `${error.message}\n${error.stdout ?? ''}${error.stderr ?? ''}`,
      }),
    )
    const text = await readFile(reportPath, 'utf8').catch(() => {
      throw new Error(`csi-sanity wrote no report. ${output.slice(0, 500)}\n…\n${output.slice(-4_000)}`)
    })
    return resultOf(JSON.parse(text))
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

/** Copies the program, because the directory on the PATH may not be accessible to an unprivileged user. */
async function copyInto(dir: string, program: string): Promise<string> {
  const copy = join(dir, 'csi-sanity')
  await copyFile(program, copy)
  await chmod(copy, 0o755)
  return copy
}

interface Spec {
  readonly State: string
  readonly ContainerHierarchyTexts: readonly string[] | null
  readonly LeafNodeText: string
  readonly LeafNodeType: string
  readonly Failure?: { readonly Message?: string }
}

function resultOf([suite]: readonly { readonly SpecReports: readonly Spec[] }[]): SanityResult {
  const specs = suite!.SpecReports.filter(({ LeafNodeType }) => LeafNodeType === 'It')
  const titleOf = (spec: Spec) => [...(spec.ContainerHierarchyTexts ?? []), spec.LeafNodeText].join(' / ')
  return {
    passed: specs.filter(({ State }) => State === 'passed').length,
    failed: specs
      .filter(({ State }) => !['passed', 'skipped', 'pending'].includes(State))
      .map((spec) => `${titleOf(spec)}: ${spec.Failure?.Message ?? spec.State}`),
    skipped: specs
      .filter(({ State }) => State === 'skipped' || State === 'pending')
      .map((spec) => ({ title: titleOf(spec), reason: spec.Failure?.Message ?? spec.State })),
  }
}
