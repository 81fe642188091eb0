// Serves the built page: index.html for `/`, and its scripts and styles, compressed if the browser accepts it. These files contain
// no data, so they need no session. They are read once, on the first request.
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ApiError, methodNotAllowed, noSuchPath } from '../../api/status-error.ts'
import { SECURITY_HEADERS } from './security-headers.ts'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}
const ENCODINGS = [
  { name: 'br', extension: '.br' },
  { name: 'gzip', extension: '.gz' },
] as const

const INDEX = 'index.html'

export interface Assets {
  /** Serves the page or one of its files. Throws 404 for other paths. */
  serve(incoming: IncomingMessage, response: ServerResponse, path: string): Promise<void>
}

export function createAssets(pageDir: string | undefined): Assets {
  let files: Promise<ReadonlyMap<string, Buffer>> | undefined
  const load = () => {
    files ??= readFiles(pageDir).catch((error) => {
      files = undefined // the next request reads them again
      throw error
    })
    return files
  }
  return {
    async serve(incoming, response, path) {
      const method = incoming.method ?? 'GET'
      if (method !== 'GET' && method !== 'HEAD') throw methodNotAllowed()
      const name = path === '/' ? INDEX : path.slice(1)
      const contents = await load()
      const type = TYPES[extname(name)]
      const plain = contents.get(name)
      if (!plain || !type) throw noSuchPath()
      const accepted = (incoming.headers['accept-encoding'] ?? '').toString()
      const encoding = ENCODINGS.find(
        ({ name: coding, extension }) => accepted.includes(coding) && contents.has(name + extension),
      )
      const body = encoding ? contents.get(name + encoding.extension)! : plain
      response.writeHead(200, {
        ...SECURITY_HEADERS,
        'content-type': type,
        'content-length': body.length,
        vary: 'accept-encoding',
        // The names of all other files contain a hash of their content.
        'cache-control': name === INDEX ? 'no-cache' : 'public, max-age=31536000, immutable',
        ...(encoding ? { 'content-encoding': encoding.name } : {}),
      })
      response.end(method === 'HEAD' ? undefined : body)
    },
  }
}

async function readFiles(pageDir: string | undefined): Promise<ReadonlyMap<string, Buffer>> {
  const dir = pageDir ?? findPageDir()
  if (dir === undefined) {
    throw new ApiError(500, 'InternalError', 'The console page has not been built. Run `npm run build`.')
  }
  const names = await readdir(dir)
  const entries = names.map(async (name) => [name, await readFile(join(dir, name))] as const)
  return new Map(await Promise.all(entries))
}

/**
 * Returns the directory of the built page, or undefined if there is none. This module runs from dist/program/ or src/console/http/, so
 * each has its candidate.
 */
function findPageDir(): string | undefined {
  const candidates = ['../console/', '../../../dist/console/']
  return candidates
    .map((path) => fileURLToPath(new URL(path, import.meta.url)))
    .find((dir) => existsSync(join(dir, INDEX)))
}
