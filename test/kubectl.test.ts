// Runs the steps of kubectl-script.ts with each kubectl that kubectls.ts finds, each against a separate server. The servers run
// concurrently; the steps of one server run in order.
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildKubeconfig } from '../src/processes/kubeconfig.ts'
import { createDaemon } from './helpers/daemon.ts'
import { findKubectls, type KubectlProgram } from './helpers/kubectls.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { createKubectl } from './kubectl/kubectl.ts'
import { isSupported, type StepContext } from './kubectl/step.ts'
import { SCRIPT } from './kubectl-script.ts'

const kubectls = await findKubectls()

if (kubectls.length === 0) {
  it.skipIf(process.env.CI !== 'true')('SYS-2 a kubectl is on PATH or in STOWAGE_KUBECTLS', () => {
    expect(kubectls).not.toEqual([])
  })
}

describe.concurrent.each(kubectls)('kubectl $version', (program) => {
  let environment: Environment
  beforeAll(async () => {
    environment = await startEnvironment(program)
  })
  afterAll(() => environment?.close())

  for (const step of SCRIPT.filter((candidate) => isSupported(candidate, program.minor))) {
    it.sequential(`SYS-2 ${step.name}`, () => step.run(environment.context))
  }
})

interface Environment {
  readonly context: StepContext
  close(): Promise<void>
}

/** Starts a server and creates a home directory for one kubectl. */
async function startEnvironment(program: KubectlProgram): Promise<Environment> {
  const dir = await mkdtemp(join(tmpdir(), 'stowage-kubectl-'))
  const server = await startServer({ dataDir: join(dir, 'data'), command: 'server' })
  // Deletions need these controllers. With all controllers, the claims that the script inspects would be bound.
  const controllers = await createDaemon({
    name: 'controllers',
    args: ['controllers', '--kubeconfig', server.kubeconfig, '--controllers', 'garbage,namespaces,protection'],
    isReady: ({ stderr }) => stderr.includes('"started"'),
  })
  await controllers.start()
  const home = join(dir, 'home')
  await mkdir(home)
  const viewerConfig = join(dir, 'viewer.kubeconfig')
  await writeFile(viewerConfig, await buildViewerKubeconfig(server))
  const anonymousConfig = join(dir, 'anonymous.kubeconfig')
  await writeFile(anonymousConfig, buildAnonymousKubeconfig(server))
  const kubectlFor = (kubeconfig: string) => createKubectl({ program, kubeconfig, namespace: 'shop', home })
  return {
    context: {
      kubectl: kubectlFor(server.kubeconfig),
      viewer: kubectlFor(viewerConfig),
      anonymous: kubectlFor(anonymousConfig),
      async file(name, text) {
        const path = join(dir, name)
        await writeFile(path, text)
        return path
      },
    },
    async close() {
      await controllers.stop()
      await server.stop()
      await rm(dir, { recursive: true })
    },
  }
}

/** Returns a kubeconfig without credentials. JSON is valid YAML. */
const buildAnonymousKubeconfig = ({ url, ca }: RunningServer): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'stowage',
        cluster: { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') },
      },
    ],
    users: [{ name: 'anonymous', user: {} }],
    contexts: [{ name: 'stowage', context: { cluster: 'stowage', user: 'anonymous' } }],
    'current-context': 'stowage',
  })

async function buildViewerKubeconfig({ dataDir, url, ca }: RunningServer): Promise<string> {
  const readPkiFile = (name: string) => readFile(join(dataDir, 'pki', name), 'utf8')
  const credential = {
    user: 'stowage-viewer',
    cert: await readPkiFile('viewer.crt'),
    key: await readPkiFile('viewer.key'),
  }
  return buildKubeconfig({ server: url, caCert: ca, credential })
}
