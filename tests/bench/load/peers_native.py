"""Loaders with native code of their own: SPDL, mlx-data, FFCV, NVIDIA DALI on the CPU, datago, webshart."""
import json
import math
import os
import random

from peers_torch import MEAN, STD, files_of, prepare_webdataset, version_of


def normalised(images, order):
    """uint8 images as normalised float32, NCHW."""
    import numpy
    scale = numpy.float32(1) / (numpy.float32(255) * numpy.asarray(STD, numpy.float32))
    shift = numpy.asarray(MEAN, numpy.float32) / numpy.asarray(STD, numpy.float32)
    return numpy.ascontiguousarray((images * scale - shift).transpose(order))


def random_crop(width, height):
    """x, y, width, height of a RandomResizedCrop."""
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, width - w), random.randint(0, height - h), w, h
    side = min(width, height)
    return (width - side) // 2, (height - side) // 2, side, side


# ---- SPDL: FFmpeg in threads ----

def open_spdl(args):
    import spdl.io
    from spdl.pipeline import PipelineBuilder
    files = files_of(args.source)

    def decode(file):
        packets = spdl.io.demux_image(file[0])
        x, y, w, h = random_crop(packets.codec.width, packets.codec.height)
        flip = "hflip," if random.random() < 0.5 else ""
        return spdl.io.decode_packets(packets, filter_desc=f"crop={w}:{h}:{x}:{y}:exact=1,scale=224:224:flags=bilinear,"
                                                           f"{flip}format=pix_fmts=rgb24")

    def batch(frames):
        images = spdl.io.to_numpy(spdl.io.convert_frames(frames))
        return normalised(images, (0, 3, 1, 2)) if args.output == "float32" else images

    def epoch(_number):
        order = random.sample(files, len(files))
        pipeline = (PipelineBuilder().add_source(order).pipe(decode, concurrency=args.workers,
                                                             output_order="completion")
                    .aggregate(args.batch).pipe(batch).add_sink(4).build(num_threads=args.workers + 1))
        with pipeline.auto_stop():
            for images in pipeline.get_iterator():
                yield len(images)
    return epoch


# ---- mlx-data: its own pipeline in threads ----

def open_mlx(args):
    import mlx.data
    files = [{"image": path.encode(), "label": label} for path, label in files_of(args.source)]

    def epoch(_number):
        stream = (mlx.data.buffer_from_vector(files).shuffle().to_stream().load_image("image")
                  .image_random_area_crop("image", (0.08, 1.0), (3 / 4, 4 / 3)).image_resize("image", 224, 224)
                  .image_random_h_flip("image", 0.5))
        if args.output == "float32":
            stream = stream.key_transform("image", lambda image: normalised(image, (2, 0, 1)))
        for batch in stream.prefetch(2 * args.batch, args.workers).batch(args.batch).prefetch(2, 1):
            yield len(batch["image"])
    return epoch


# ---- FFCV: numba and libjpeg-turbo in threads; it encodes the images anew ----

def prepare_ffcv(source, store):
    from ffcv.fields import IntField, RGBImageField
    from ffcv.writer import DatasetWriter
    from torchvision.datasets import ImageFolder
    writer = DatasetWriter(os.path.join(store, "images.beton"),
                           {"image": RGBImageField(write_mode="jpg", jpeg_quality=94), "label": IntField()},
                           num_workers=2)
    writer.from_indexed_dataset(ImageFolder(source), shuffle_indices=True)


def open_ffcv(args):
    import numpy
    from ffcv import transforms
    from ffcv.fields.basics import IntDecoder
    from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    image = [RandomResizedCropRGBImageDecoder((224, 224)), transforms.RandomHorizontalFlip()]
    if args.output == "float32":
        image.append(transforms.NormalizeImage(255 * numpy.array(MEAN), 255 * numpy.array(STD), numpy.float32))
    loader = Loader(os.path.join(args.store, "images.beton"), batch_size=args.batch, num_workers=args.workers,
                    order=OrderOption.RANDOM, os_cache=True, drop_last=False,
                    pipelines={"image": [*image, transforms.ToTensor(), transforms.ToTorchImage()],
                               "label": [IntDecoder(), transforms.ToTensor()]})

    def epoch(_number):
        for batch in loader:
            yield len(batch[0])
    return epoch


# ---- DALI, CPU pipeline ----

def open_dali(args):
    from nvidia.dali import fn, pipeline_def, types
    count = len(files_of(args.source))

    @pipeline_def(batch_size=args.batch, num_threads=args.workers, device_id=None)
    def images():
        files, labels = fn.readers.file(file_root=args.source, random_shuffle=True, initial_fill=4096, name="files",
                                        pad_last_batch=True)
        pixels = fn.decoders.image_random_crop(files, device="cpu", output_type=types.RGB, random_area=[0.08, 1.0],
                                               random_aspect_ratio=[3 / 4, 4 / 3])
        pixels = fn.resize(pixels, size=[224, 224], interp_type=types.INTERP_LINEAR)
        mirror = fn.random.coin_flip(probability=0.5)
        if args.output == "float32":
            return fn.crop_mirror_normalize(pixels, dtype=types.FLOAT, output_layout="CHW", mirror=mirror,
                                            mean=[255 * x for x in MEAN], std=[255 * x for x in STD]), labels
        return fn.flip(pixels, horizontal=mirror), labels

    pipeline = images()
    pipeline.build()

    def epoch(_number):
        for done in range(0, count, args.batch):
            pixels, _labels = pipeline.run()
            pixels.as_tensor()
            yield min(args.batch, count - done)
    return epoch


# ---- datago: Rust threads; whole images cut to a square, no random crop, no flip ----

def open_datago(args):
    import datago
    import numpy
    os.environ.setdefault("RAYON_NUM_THREADS", str(args.workers))
    os.environ.setdefault("DATAGO_MAX_TASKS", str(args.workers))
    count = len(files_of(args.source))
    config = json.dumps({
        "source_type": "file", "source_config": {"root_path": args.source, "random_sampling": True, "rank": 0,
                                                 "world_size": 1},
        "image_config": {"crop_and_resize": True, "default_image_size": 224, "downsampling_ratio": 16,
                         "min_aspect_ratio": 1.0, "max_aspect_ratio": 1.0, "pre_encode_images": False,
                         "image_to_rgb8": True},
        "limit": count, "prefetch_buffer_size": 256, "samples_buffer_size": 256})

    def epoch(_number):
        client = datago.DatagoClient(config)
        client.start()
        batch = numpy.empty((args.batch, 224, 224, 3), numpy.uint8)
        done = 0
        while done < count:
            rows = min(args.batch, count - done)
            for row in range(rows):
                sample = client.get_sample()
                if sample is None:
                    raise RuntimeError(f"datago ended after {done + row} of {count} images")
                batch[row] = sample.image.to_numpy_array()
            if args.output == "float32":
                normalised(batch[:rows], (0, 3, 1, 2))
            done += rows
            yield rows
        client.stop()
    return epoch


# ---- webshart: reads tar files by an index; no decoding ----

def prepare_webshart(source, store):
    import webshart
    prepare_webdataset(source, store)
    webshart.MetadataExtractor().extract_metadata(source=store, destination=store, max_workers=2)


def open_webshart(args):
    import webshart
    loader = webshart.TarDataLoader(webshart.discover_dataset(args.store), batch_size=args.batch)

    def epoch(_number):
        loader.reset()
        for batch in loader.iter_batches():
            yield sum(entry.path.endswith(".jpg") for entry in batch)
    return epoch


PEERS = {
    "spdl": {"open": open_spdl, "version": version_of("spdl", "spdl_io")},
    "mlx-data": {"open": open_mlx, "version": version_of("mlx-data")},
    "ffcv": {"prepare": prepare_ffcv, "open": open_ffcv, "version": version_of("ffcv", "torch")},
    "dali": {"open": open_dali, "version": version_of("nvidia-dali-cuda120")},
    "datago": {"open": open_datago, "version": version_of("datago")},
    "webshart": {"prepare": prepare_webshart, "open": open_webshart, "version": version_of("webshart")},
}
