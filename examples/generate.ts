/**
 * Writes what follows from each example's operator: its CRD, and the account under which it runs with what that may do.
 *
 *   node examples/generate.ts
 */
import { glob, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type CustomResource, type Reconciler, rbacOf, rbacYaml } from 'shipmate'

/** Where the operators run: any namespace will do. */
const namespace = 'default'

/** The text of every generated file, by its path from this folder. */
export async function generated(): Promise<Record<string, string>> {
  const files: Record<string, string> = {}
  for await (const path of glob('*/operator.ts', { cwd: import.meta.dirname })) {
    const { operator } = (await import(join(import.meta.dirname, path))) as { operator: Reconciler<object> }
    const folder = dirname(path)
    const name = basename(folder)
    files[join(folder, 'crd.yaml')] = (operator.kind as CustomResource).crdYaml()
    files[join(folder, 'rbac.yaml')] = rbacYaml(rbacOf([operator], { lease: operator.name }), { name, namespace })
  }
  return files
}

if (import.meta.main) {
  for (const [path, text] of Object.entries(await generated())) {
    await writeFile(join(import.meta.dirname, path), text)
    console.log(path)
  }
}
