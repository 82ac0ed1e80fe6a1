"""
An S3 server on this machine: OpenStack Swift from Debian's package python3-swift, with its S3 interface, in one process.

Arguments: an empty folder, and a port. The key is test:inlet, its secret is "secret". Prints "ready" when it accepts
connections.
"""

import os
import sys

import eventlet

eventlet.monkey_patch()

from eventlet import wsgi
from swift.common import utils
from swift.common.ring import RingBuilder
from swift.common.wsgi import SwiftHttpProtocol, loadapp

STORES = ("account", "container", "object")

PROXY = """
[pipeline:main]
pipeline = cache s3api tempauth proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:cache]
use = egg:swift#memcache
# Nothing listens there, and Swift works without a cache.
memcache_servers = 127.0.0.1:1
[filter:s3api]
use = egg:swift#s3api
[filter:tempauth]
use = egg:swift#tempauth
user_test_inlet = secret .admin
"""

STORE = """
[pipeline:main]
pipeline = store
[app:store]
use = egg:swift#{}
"""

POLICIES = """
[swift-hash]
swift_hash_path_suffix = test
[storage-policy:0]
name = only
default = yes
"""


def write(name, text):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(text)
    return path


def make_ring(name, port):
    ring = RingBuilder(4, 1, 1)
    place = {"region": 1, "zone": 1, "ip": "127.0.0.1", "port": port, "device": "disk", "weight": 1}
    ring.add_dev(place)
    ring.rebalance()
    ring.get_ring().save(os.path.join(folder, f"{name}.ring.gz"))


def serve(name, text):
    app = loadapp(write(f"{name}.conf", shared + text))
    protocol = SwiftHttpProtocol
    return eventlet.spawn(wsgi.server, sockets[name], app, utils.NullLogger(), protocol=protocol)


folder = sys.argv[1]
os.mkdir(os.path.join(folder, "disk"))
write("swift.conf", POLICIES)
utils.set_swift_dir(folder)
shared = f"[DEFAULT]\nswift_dir = {folder}\ndevices = {folder}\nmount_check = false\n"
ports = {**{name: 0 for name in STORES}, "proxy": int(sys.argv[2])}
sockets = {name: eventlet.listen(("127.0.0.1", port)) for name, port in ports.items()}
for name in STORES:
    make_ring(name, sockets[name].getsockname()[1])
threads = [serve(name, STORE.format(name)) for name in STORES]
threads.append(serve("proxy", PROXY))
print("ready", flush=True)
for thread in threads:
    thread.wait()
